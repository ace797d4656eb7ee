"""Builds an image: root tree, disk, manifest; all or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vmlab.guests.image import catalog
from vmlab.guests.image.catalog import Image
from vmlab.guests.image.locks import Lock
from vmlab.guests.image.recipe import Recipe
from vmlab.guests.image.root_tree import make_tree, package_versions
from vmlab.guests.image.steps import Stop, run_step, stoppable
from vmlab.model.errors import ImageError
from vmlab.model.units import format_bytes

Progress = Callable[[str], None]

_NEEDED_BYTES = 4 * 1024**3
_SPARE_BYTES = 3 * 512 * 1024**2
_BLOCK = 1024**2
_TOOLS = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "unshare": "util-linux", "setpriv": "util-linux"}


_BUILD_LOCK = ".build.lock"


@dataclass(frozen=True, slots=True)
class _Site:
    """One build under way: its recipe, its folder, and what it listens to and tells."""

    recipe: Recipe
    folder: Path
    stop: Stop
    progress: Progress

    @property
    def log(self) -> Path:
        return self.folder / "build.log"

    def step(self, argv: list[str]) -> None:
        # What a tool leaves in its temporary folder when it is killed goes away with the build's own folder.
        environment = {**self.recipe.environment, "TMPDIR": str(self.folder)}
        try:
            run_step(argv, self.log, self.stop, environment=environment, said=self._said)
        except ImageError as error:
            raise ImageError(str(error), remedy=f"see {catalog.images_folder() / catalog.FAILED_LOG}") from error

    def _said(self, line: str) -> None:
        if line.startswith("step: "):
            self.progress(f"preparing {line.removeprefix('step: ').strip('0123456789-').removesuffix('.sh')}")
        elif line.startswith("I: ") and line.endswith("..."):
            self.progress(line.removeprefix("I: ").removesuffix("..."))


def ensure(progress: Progress) -> Image:
    """The current image, built where it is missing. Raises ImageError, or RunInterrupted on a signal."""
    return catalog.find() or build(progress)


def build(progress: Progress, force: bool = False) -> Image:
    """Build the current image; with `force` also where there is one, which it then replaces.

    One build runs at a time: a second one waits, says so through `progress`, and finds the image there.
    Raises ImageError when it cannot be built or is in use, RunInterrupted on Ctrl-C, SIGTERM or SIGHUP; then nothing
    half-built is left. A build that was killed outright leaves a folder, which the next one removes.
    """
    recipe = catalog.current_recipe()
    final = catalog.images_folder() / recipe.address()
    _check_tools()
    with stoppable() as stop, _system_errors_are_said(), _only_builder(progress, stop):
        for left in catalog.leftovers():
            shutil.rmtree(left)
        if final.is_dir() and not force:
            return catalog.load(final)
        if final.is_dir() and catalog.in_use(final):
            raise ImageError(f"guest image {final.name} is in use by a run", remedy="wait for the run, or vmlab stop")
        _check_space()
        folder = catalog.unfinished_folder(recipe.address())
        try:
            _make(_Site(recipe, folder, stop, progress))
            stop.check()
            if final.is_dir():
                catalog.retire(final)
            folder.rename(final)
        except BaseException as error:
            if isinstance(error, ImageError):
                _keep_log(folder)
            shutil.rmtree(folder)
            raise
    return catalog.load(final)


def clear_unfinished() -> list[Path]:
    """Remove what builds that were killed left behind, unless a build runs; what went."""
    if not catalog.images_folder().is_dir():
        return []
    lock = Lock.try_exclusive(catalog.images_folder() / _BUILD_LOCK)
    if lock is None:
        return []
    try:
        left = catalog.leftovers()
        for folder in left:
            shutil.rmtree(folder)
        return left
    finally:
        lock.release()


def _make(site: _Site) -> None:
    began = time.monotonic()
    tree = site.folder / "tree"
    site.progress(f"installing Debian {site.recipe.codename} with {len(site.recipe.packages)} chosen packages")
    make_tree(site.recipe, tree, site.folder, site.step)
    packages = package_versions(tree)
    for name in ("vmlinuz", "initrd.img"):
        shutil.move(tree / "boot" / name, site.folder / name)
    site.progress("making the root disk")
    _make_disk(site, tree)
    shutil.rmtree(tree)
    site.progress("checking the files")
    manifest = {
        "schema": "vmlab.image/1",
        "id": site.recipe.address(),
        "created": time.time(),
        "build_seconds": round(time.monotonic() - began, 1),
        "command_line": site.recipe.command_line,
        "files": {name: _described(site.folder / name, site.stop) for name in catalog.FILES},
        "packages": packages,
        "recipe": site.recipe.described(),
    }
    (site.folder / catalog.MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    (site.folder / catalog.USE_LOCK).touch()
    site.folder.chmod(0o755)


def _make_disk(site: _Site, tree: Path) -> None:
    used = sum(path.lstat().st_blocks for path in tree.rglob("*")) * 512
    disk = site.folder / "root.raw"
    with disk.open("wb") as file:
        file.truncate((used + _SPARE_BYTES) // _BLOCK * _BLOCK)
    # Inode tables and journal are ready at once: a kernel thread that made them later would disturb a benchmark.
    site.step(
        [
            *("mke2fs", "-q", "-t", "ext4", "-b", "4096", "-m", "0", "-L", "vmlab"),
            *("-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", str(tree), str(disk)),
        ]
    )


def _described(path: Path, stop: Stop) -> dict[str, object]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(8 * _BLOCK):
            stop.check()
            digest.update(chunk)
    return {"size": path.stat().st_size, "sha256": digest.hexdigest()}


def _check_tools() -> None:
    if os.geteuid() != 0:
        raise ImageError("building a guest image needs root", remedy="run it with sudo")
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None})
    if missing:
        names = " ".join(missing)
        raise ImageError(f"building a guest image needs {names}", remedy=f"apt-get install {names}")


def _check_space() -> None:
    free = shutil.disk_usage(catalog.images_folder()).free
    if free < _NEEDED_BYTES:
        raise ImageError(
            f"building a guest image needs {format_bytes(_NEEDED_BYTES)} below {catalog.images_folder()}, "
            f"and {format_bytes(free)} are free",
            remedy="make room, or set XDG_CACHE_HOME to a larger disk",
        )


def _keep_log(folder: Path) -> None:
    """Keep what the tools said, beside the images, as the only trace of a build that failed."""
    log = folder / "build.log"
    if log.exists():
        log.replace(catalog.images_folder() / catalog.FAILED_LOG)


@contextmanager
def _system_errors_are_said() -> Iterator[None]:
    """A disk that is full or read-only is told in one line, like everything else that a user can mend."""
    try:
        yield
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise ImageError(f"the guest image could not be built: {error.strerror or error}{where}") from error


@contextmanager
def _only_builder(progress: Progress, stop: Stop) -> Iterator[None]:
    catalog.images_folder().mkdir(parents=True, exist_ok=True)
    path = catalog.images_folder() / _BUILD_LOCK
    lock = Lock.try_exclusive(path)
    if lock is None:
        progress("another build of a guest image is under way; waiting for it")
    while lock is None:
        time.sleep(0.2)
        stop.check()
        lock = Lock.try_exclusive(path)
    try:
        yield
    finally:
        lock.release()
