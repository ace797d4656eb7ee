"""Builds an image, all or nothing: the root file system as a folder of Debian's packages and the payload, whose set-up
runs inside; its disk, and the manifest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vmlab.guests.cached.collection import Notice
from vmlab.guests.cached.locks import Lock
from vmlab.guests.image import catalog
from vmlab.guests.image.catalog import DOCS, FILES, IMAGES, Image, licences
from vmlab.guests.image.recipe import PAYLOAD, ImageRecipe, LayerRecipe, apt_options, debian_sources
from vmlab.guests.image.steps import STEP_TOOLS, run_step, stoppable, wait_alone
from vmlab.integrity.digests import describe
from vmlab.integrity.long_work import LongWork
from vmlab.model.errors import ImageError, in_one_line
from vmlab.model.places import remedy_for
from vmlab.model.quantities import format_bytes
from vmlab.system.file_system import demand_usable
from vmlab.system.packages import installing
from vmlab.system.removal import Removals, remove_file, remove_tree

_NEEDED_BYTES = 4 * 1024**3
_SPARE_BYTES = 3 * 512 * 1024**2
_BLOCK = 1024**2
_TOOLS = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "gcc": "gcc"}

_BUILD_LOCK = ".build.lock"
"""By this lock another version of the program, in another checkout, sees that a build is under way."""


@dataclass(frozen=True, slots=True)
class BuildJob:
    """One build under way: the environment of its steps, its folder, its work, which may be ended, and its messages."""

    environment: Mapping[str, str]
    folder: Path
    work: LongWork
    progress: Notice
    began: float

    @property
    def log(self) -> Path:
        return self.folder / "build.log"

    def step(self, argv: list[str]) -> None:
        """Run a program to its end. Raises ImageError with its last words, and what the work raises."""
        # Tools use a temporary folder inside the build's folder, so that their files are removed with it after a kill.
        environment = {**self.environment, "TMPDIR": str(self.folder)}
        try:
            run_step(argv, self.log, self.work, environment=environment, said=self._said, each=self._moved)
        except ImageError as error:
            raise ImageError(str(error), remedy=f"see {catalog.images_folder() / catalog.FAILED_LOG}") from error

    def _moved(self) -> None:
        self.work.step(time.monotonic() - self.began - self.work.done)

    def _said(self, line: str) -> None:
        if line.startswith("step: "):
            self.progress(f"preparing {line.removeprefix('step: ').strip('0123456789-').removesuffix('.sh')}")
        elif line.startswith("I: ") and line.endswith("..."):
            self.progress(line.removeprefix("I: ").removesuffix("..."))


def ensure(progress: Notice) -> Image:
    """The current image, built where it is missing. Raises ImageError, or RunInterrupted on a signal."""
    return catalog.find() or build(progress)


def build(progress: Notice, force: bool = False) -> Image:
    """Build the current image; with `force` also where there is one, which it then replaces.

    One build runs at a time: a second one waits, with a line through `progress`, and then uses the first one's image.
    Raises ImageError when it cannot be built or is in use, RunInterrupted on Ctrl-C, SIGTERM or SIGHUP; then nothing
    half-built is left. A build that was killed leaves a folder, which the next one removes; where that fails it reports
    so, and builds beside it.
    """
    recipe = catalog.own_recipe()
    making = Making(partial(_make, recipe), recipe.environment, _TOOLS, _NEEDED_BYTES)
    return built(recipe.address(), making, progress, force=force)


@dataclass(frozen=True, slots=True)
class Making:
    """How an image is made: `make` fills and seals the job's folder, by `tools`, each with its package, in `room`."""

    make: Callable[[BuildJob], None]
    environment: Mapping[str, str]
    tools: Mapping[str, str]
    room: int


def built(id: str, making: Making, progress: Notice, *, force: bool) -> Image:
    """The image `id`, made where it is missing, or with `force`. Raises as `build` does."""
    final = catalog.images_folder() / id
    _check_tools(making.tools)
    demand_usable(catalog.images_folder())
    with stoppable("the image build") as work, _system_errors_are_said(), _only_builder(progress, work):
        if final.is_dir() and not force:
            return catalog.load(final)
        if IMAGES.in_use(final):
            raise IMAGES.used_by_a_run(final.name)
        _check_space(making.room)
        with IMAGES.begun(id, IMAGES.gate(), progress) as folder:
            try:
                making.make(BuildJob(making.environment, folder, work, progress, time.monotonic()))
            except ImageError:
                _keep_log(folder)
                raise
            work.step()
            _clear_place(final, progress)
            IMAGES.keep(folder, final.name)
    return catalog.load(final)


def _clear_place(final: Path, progress: Notice) -> None:
    """Remove the image that the new one replaces. Raises ImageError when a run uses it."""
    try:
        if not IMAGES.retire(final):
            raise IMAGES.used_by_a_run(final.name)
    except OSError as error:
        if final.exists():
            raise
        progress(f"the image that was there before is out of use, but cannot be removed: {in_one_line(error)}")


def clear_unfinished() -> Removals:
    """Remove what killed builds left behind, unless a build runs; returns what was removed and what was not.

    Raises RefusedError and OSError as the collection does.
    """
    if not catalog.images_folder().is_dir():
        return Removals()
    lock = Lock.try_exclusive(catalog.images_folder() / _BUILD_LOCK)
    if lock is None:
        return Removals()
    with lock:
        return IMAGES.clear_unfinished()


def _make(recipe: ImageRecipe, job: BuildJob) -> None:
    job.work.begin("building the image", last_seconds(layer=False) or 0.0, "s")
    tree = job.folder / "tree"
    job.progress(f"installing Debian {recipe.codename} with {len(recipe.packages)} chosen packages")
    make_tree(recipe, tree, job.folder, job.step)
    packages = package_versions(tree)
    named = licences(tree, packages)
    # Manuals are left out of the image.
    for entry in (tree / DOCS).glob("*"):
        job.work.step()
        remove_tree(entry) if entry.is_dir() and not entry.is_symlink() else remove_file(entry)
    for name in ("vmlinuz", "initrd.img"):
        shutil.move(tree / "boot" / name, job.folder / name)
    job.progress("making the root disk")
    _make_disk(job, tree)
    remove_tree(tree)
    seal(job, recipe, recipe.command_line, packages, named)


def seal(
    job: BuildJob,
    recipe: ImageRecipe | LayerRecipe,
    command_line: str,
    packages: Mapping[str, str],
    named: Mapping[str, Sequence[str]],
) -> None:
    """Describe the files of a new image, with the versions and the licences of its `packages`, in its manifest."""
    job.progress("checking the files")
    job.work.begin("checking the files", sum((job.folder / name).stat().st_size for name in FILES))
    manifest = {
        "build_seconds": round(time.monotonic() - job.began, 1),
        "command_line": command_line,
        "packages": packages,
        "licences": named,
        "recipe": recipe.described(),
    }
    files = {name: describe(job.folder / name, job.work) for name in FILES}
    IMAGES.seal(job.folder, recipe.address(), files, manifest)
    job.folder.chmod(0o755)


def last_seconds(*, layer: bool) -> float | None:
    """How long the newest image took that this machine built, or the newest layer; None where it has built none."""
    manifests = [one.manifest for one in sorted(IMAGES.entries(), key=lambda one: one.created) if one.manifest]
    of_kind = (one for one in reversed(manifests) if (LayerRecipe.of(one) is not None) is layer)
    return next((float(one["build_seconds"]) for one in of_kind if "build_seconds" in one), None)


def _make_disk(job: BuildJob, tree: Path) -> None:
    used = 0
    for path in tree.rglob("*"):
        job.work.step()
        used += path.lstat().st_blocks * 512
    disk = job.folder / "root.raw"
    with disk.open("wb") as file:
        file.truncate((used + _SPARE_BYTES) // _BLOCK * _BLOCK)
    # Inode tables and journal are ready at once: a kernel thread that made them later would disturb a benchmark.
    job.step(
        [
            *("mke2fs", "-q", "-t", "ext4", "-b", "4096", "-m", "0", "-L", "vmlab"),
            *("-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", str(tree), str(disk)),
        ]
    )


def _check_tools(tools: Mapping[str, str]) -> None:
    if os.geteuid() != 0:
        raise ImageError("building a guest image needs root", remedy="run it with sudo")
    needed = {**STEP_TOOLS, **tools}
    missing = sorted({package for tool, package in needed.items() if shutil.which(tool) is None})
    if missing:
        raise ImageError(f"building a guest image needs {' '.join(missing)}", remedy=installing(*missing))


def _check_space(room: int) -> None:
    free = shutil.disk_usage(catalog.images_folder()).free
    if free < room:
        raise ImageError(
            f"building a guest image needs {format_bytes(room)} below {catalog.images_folder()}, "
            f"and {format_bytes(free)} are free",
            remedy="make room, or set XDG_CACHE_HOME to a larger disk",
        )


def _keep_log(folder: Path) -> None:
    """Keep the tools' output beside the images, as the only trace of a build that failed."""
    log = folder / "build.log"
    if log.exists():
        log.replace(catalog.images_folder() / catalog.FAILED_LOG)


@contextmanager
def _system_errors_are_said() -> Iterator[None]:
    """Report a full or read-only disk in one line, like all errors that a user can fix."""
    try:
        yield
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        words = f"the guest image could not be built: {error.strerror or error}{where}"
        raise ImageError(words, remedy=remedy_for(error.filename) if where else None) from error


def _only_builder(progress: Notice, work: LongWork) -> Lock:
    """The lock that one build has at a time; blocks."""
    lock = catalog.images_folder() / _BUILD_LOCK
    return wait_alone(lock, "another build of a guest image is under way", progress, work)


def make_tree(recipe: ImageRecipe, tree: Path, scratch: Path, step: Callable[[list[str]], None]) -> None:
    """Fill `tree`, which must not exist yet, with the help of two files in `scratch`. Raises ImageError."""
    sources = debian_sources(recipe.codename)
    listed = scratch / "debian.sources"
    listed.write_text("\n".join(source.stanza() for source in sources), encoding="utf-8")
    options = scratch / "apt.conf"
    options.write_text("".join(f"{line}\n" for line in apt_options()), encoding="utf-8")
    local = any(uri.startswith(("file:", "copy:")) for source in sources for uri in source.uris)
    step(
        [
            *("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"),
            f"--architectures={recipe.architecture}",
            f"--include={','.join(recipe.packages)}",
            f"--aptopt={options}",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.left_out),
            # Licences are read of it before it goes; a package may have another one's folder by a link.
            f"--dpkgopt=path-include=/{DOCS}/*",
            "--dpkgopt=force-unsafe-io",
            *(["--hook-directory=/usr/share/mmdebstrap/hooks/file-mirror-automount"] if local else []),
            # Java of Debian 13 makes links to manuals, whose folder is left out with them.
            '--essential-hook=mkdir -p "$1/usr/share/man/man1"',
            *(f"--customize-hook={hook}" for hook in _hooks()),
            recipe.codename,
            str(tree),
            str(listed),
        ]
    )
    # They may contain the address of a private mirror, which does not belong in an image.
    remove_file(listed)
    remove_file(options)


def _hooks() -> Iterator[str]:
    """Shell lines that mmdebstrap runs with the new root as ``$1``; modes are set, whatever the checkout's are."""
    pack = "tar -C '{source}' --mode=u=rwX,go=rX --owner=0 --group=0 -cf - ."
    copy = pack + ' | tar -C "$1{target}" --no-overwrite-dir -xf -'
    yield copy.format(source=PAYLOAD / "root", target="")
    for part in ("setup", "initrd"):
        yield f'mkdir -p "$1/usr/lib/vmlab/{part}"'
        yield copy.format(source=PAYLOAD / part, target=f"/usr/lib/vmlab/{part}")
    yield f"sh '{PAYLOAD / 'programs' / 'compile'}' \"$1\""
    # Servers that run during the build must not conflict with those of the host, so they have their own network.
    yield 'unshare --net --mount chroot "$1" sh /usr/lib/vmlab/setup/run'
    # Whoever installs something in a guest leaves out what its image leaves out.
    yield 'kept="$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"; [ ! -f "$kept" ] || sed -i "/^path-include=/d" "$kept"'


def package_versions(tree: Path) -> dict[str, str]:
    """Every installed package's version, by its name."""
    listed = subprocess.run(
        ["dpkg-query", f"--admindir={tree}/var/lib/dpkg", "--show", "--showformat=${Package} ${Version}\n"],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split(" ", 1) for line in listed.stdout.splitlines())
