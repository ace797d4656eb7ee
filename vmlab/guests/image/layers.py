"""Layers: copies of the image with packages of Debian's besides, each built once, by apt-get of this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vmlab.guests.cached.collection import Notice
from vmlab.guests.image import building, catalog
from vmlab.guests.image.building import BuildJob, Making, built, last_seconds, package_versions, seal
from vmlab.guests.image.catalog import FILES, IMAGES, Image, licences
from vmlab.guests.image.recipe import LAYER_PROGRAM, LayerRecipe, apt_options, debian_sources
from vmlab.model.errors import ImageError, VmlabError
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.system.removal import remove_file, remove_tree
from vmlab.system.scratch import scratch

_TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg", "mount": "mount"}
_SETTINGS = (
    # Of this machine's own settings there are its sources, and how packages are fetched: nothing that it runs besides.
    'Dir::Etc::main "/dev/null";',
    'Dir::Etc::parts "/dev/null";',
    'Dir::Etc::sourceparts "/dev/null";',
    'Dir::Etc::preferences "/dev/null";',
    'Dir::Etc::preferencesparts "/dev/null";',
    'Dir::Cache::pkgcache "";',
    'Dir::Cache::srcpkgcache "";',
    'Dir::Log::Terminal "";',
    'Dir::Log::History "";',
    'Dir::Log::Planner "";',
    # The host may be shut down meanwhile.
    'DPkg::Inhibit-Shutdown "false";',
    'Acquire::Languages "none";',
    'APT::Update::Error-Mode "any";',
    'APT::Sandbox::User "root";',
    # As the image is built.
    'APT::Install-Recommends "false";',
)
_NOTHING_INSTALLED = ("-o", "Dir::State::status=/dev/null")
_ALWAYS = "base-files"
"""A package of every release: without it nothing is known of any."""
_CANDIDATE = re.compile(r"^(\S+):\n  Installed: .*\n  Candidate: (?!\(none\))", re.MULTILINE)
_ASK = 60.0
_NEWEST = "apt-get update reads the newest lists"


def layer_name(packages: Sequence[str]) -> str:
    """The name of a layer in a run's record."""
    return f"{LAB_IMAGE} with {', '.join(packages)}"


def layer_recipe(base: Image, packages: tuple[str, ...]) -> LayerRecipe:
    """What a layer with `packages`, which are in order, is made of. Raises ImageError as `load` does."""
    codename = str(IMAGES.read(base.folder)["recipe"]["codename"])
    return LayerRecipe(codename, base.id, base.files[FILES[0]].sha256, packages)


def find_layer(base: Image, packages: tuple[str, ...]) -> Image | None:
    """The layer with `packages` on top of `base`; None where it was not built yet. Raises ImageError as `load` does."""
    folder = catalog.images_folder() / layer_recipe(base, packages).address()
    return catalog.load(folder) if folder.is_dir() else None


def require_layer(base: Image, packages: tuple[str, ...]) -> Image:
    """As `find_layer`, but raises ImageError where there is none."""
    if (found := find_layer(base, packages)) is None:
        options = " ".join(f"--with {name}" for name in packages)
        raise ImageError(f"no layer with {', '.join(packages)} was built", remedy=f"vmlab image build {options}")
    return found


def layer_versions(layers: Iterable[Image]) -> dict[str, str]:
    """By name the version of each package that one of the layers has, and its image has not in this version.

    Where layers differ, all versions joined by ``+``. Raises ImageError as `load` does.
    """
    found: dict[str, set[str]] = {}
    for layer in layers:
        manifest = IMAGES.read(layer.folder)
        below = IMAGES.read(layer.folder.with_name(str(manifest["recipe"]["base"]))).get("packages", {})
        for name, version in manifest["packages"].items():
            if below.get(name) != version:
                found.setdefault(name, set()).add(str(version))
    return {name: "+".join(sorted(versions)) for name, versions in sorted(found.items())}


def ensure_layer(base: Image, packages: tuple[str, ...], progress: Notice) -> Image:
    """As `find_layer`, built where it is missing. Raises ImageError, or RunInterrupted on a signal."""
    return find_layer(base, packages) or _built(base, packages, progress, force=False)


def build_layer(packages: tuple[str, ...], progress: Notice, *, force: bool = False) -> Image:
    """The layer with `packages` on top of the current image, both built where they are missing; with `force` the layer
    is built again. Raises as `building.build` does; a package that is known to be missing before anything is built.
    """
    if reasons := lacking_packages(packages):
        unknown = all(why == no_package(name) for name, why in reasons.items())
        raise ImageError("; ".join(dict.fromkeys(reasons.values())), remedy=_NEWEST if unknown else None)
    return _built(building.ensure(progress), packages, progress, force=force)


def remove(id: str) -> list[str]:
    """Delete an image, and the layers on top of it, which nothing uses without it; the ids of all that went.

    Raises ImageError where there is none of that id, or a run uses it, and OSError.
    """
    layers = [(one, LayerRecipe.of(one.manifest)) for one in IMAGES.entries() if one.manifest]
    above = [one for one, layer in layers if layer is not None and layer.base == id]
    if (used := next((one.id for one in above if one.in_use), None)) is not None:
        raise IMAGES.used_by_a_run(used)
    IMAGES.remove(id)
    gone = [one.id for one in above]
    for name in gone:
        IMAGES.remove(name)
    return [id, *gone]


@dataclass(frozen=True, slots=True)
class LayerState:
    """A layer that a plan needs. `bytes` is what it takes on disk, before it is built what the image below it takes;
    `seconds` how long the layer took that was built last. None where there was none to measure.
    """

    packages: tuple[str, ...]
    is_built: bool
    bytes: int | None
    seconds: float | None


def current_bytes() -> dict[tuple[str, ...], int]:
    """What the current image and each layer on it takes on disk, by its packages, which the image has none of."""
    try:
        return {one.packages: one.bytes for one in catalog.list_images() if one.current}
    except ImageError:
        # No image can be built here, and none was brought.
        return {}


def states(wanted: Sequence[tuple[str, ...]]) -> list[LayerState]:
    """What is known of these layers on this host."""
    if not wanted:
        return []
    here = current_bytes()
    seconds = last_seconds(layer=True)
    return [LayerState(one, one in here, here.get(one, here.get(())), seconds) for one in wanted]


def lacking_packages(names: Sequence[str]) -> dict[str, str]:
    """Why this machine cannot get those of `names` that it cannot get, by name; all are asked for at once.

    Those are not asked for that the current image's layers have, and without lists of packages none lacks.
    """
    try:
        built_before = {name for one in catalog.list_images() if one.current for name in one.packages}
        codename = catalog.current_recipe().codename
    except (VmlabError, OSError):
        return {}
    asked = [name for name in dict.fromkeys(names) if name not in built_before]
    if not asked:
        return {}
    try:
        with scratch("apt") as folder:
            return {name: no_package(name) for name in _unknown(asked, _configured(folder, codename))}
    except ImageError as error:
        # No source of Debian's is configured.
        return dict.fromkeys(asked, str(error))
    except (OSError, subprocess.SubprocessError):
        return {}


def no_package(name: str) -> str:
    """The words for a package that does not exist."""
    return f"the configured sources of Debian have no package {name}"


def _unknown(names: Sequence[str], settings: Path) -> list[str]:
    argv = ["apt-cache", *_NOTHING_INSTALLED, "policy", _ALWAYS, *names]
    environment = {**os.environ, **_environment(settings)}
    done = subprocess.run(
        argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ASK, check=False
    )
    found = set(_CANDIDATE.findall(done.stdout))
    return [name for name in names if name not in found] if _ALWAYS in found else []


def _environment(settings: Path) -> dict[str, str]:
    return {"APT_CONFIG": str(settings), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def _configured(folder: Path, codename: str, *settings: str) -> Path:
    """Write a configuration of apt's that knows this machine's sources of Debian alone, with `settings`; its file."""
    sources = folder / "debian.sources"
    # What is in a folder of this machine is copied from there: dpkg looks for it in the image's root file system.
    found = [
        replace(
            one, uris=tuple(uri.replace("file:", "copy:", 1) if uri.startswith("file:") else uri for uri in one.uris)
        )
        for one in debian_sources(codename)
    ]
    sources.write_text("\n".join(one.stanza() for one in found), encoding="utf-8")
    file = folder / "apt.conf"
    lines = (*_SETTINGS, f'Dir::Etc::sourcelist "{sources}";', *settings, *apt_options())
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def _built(base: Image, packages: tuple[str, ...], progress: Notice, *, force: bool) -> Image:
    recipe = layer_recipe(base, packages)
    # The copy of the disk can take as much as the disk has.
    room = sum(digests.size for digests in base.files.values())
    return built(recipe.address(), Making(partial(_make, base, recipe), {}, _TOOLS, room), progress, force=force)


def _make(base: Image, recipe: LayerRecipe, job: BuildJob) -> None:
    # Held until the layer is there: it is worth nothing without its image.
    with base.held():
        job.work.begin(f"checking image {base.id}", sum(digests.size for digests in base.files.values()))
        base.require_whole()
        job.work.begin("building the layer", last_seconds(layer=True) or 0.0, "s")
        job.progress(f"copying image {base.id}")
        files = (str(base.folder / name) for name in FILES)
        job.step(["cp", "--reflink=auto", "--sparse=always", "--", *files, str(job.folder)])
        _install(recipe, job)
        before = IMAGES.read(base.folder)
        packages = package_versions(job.folder / "kept")
        changed = [name for name, version in before["packages"].items() if packages.get(name) != version]
        if changed:
            job.progress(f"packages of the image that are newer in the layer: {', '.join(changed)}")
        named = before.get("licences", {}) | {
            name: found for name, found in licences(job.folder / "kept", packages).items() if found
        }
        for folder in (job.folder / "apt", job.folder / "kept"):
            remove_tree(folder)
        # They may contain the address of a private mirror, which does not belong in an image.
        for name in ("debian.sources", "apt.conf"):
            remove_file(job.folder / name)
        seal(job, recipe, base.command_line, packages, {name: named.get(name, []) for name in packages})


def _install(recipe: LayerRecipe, job: BuildJob) -> None:
    """Have the packages in the copy of the root disk, and what was installed in the folder `kept`."""
    apt, root = job.folder / "apt", job.folder / "root"
    for part in ("lists/partial", "archives/partial"):
        (apt / part).mkdir(parents=True)
    settings = _configured(
        job.folder,
        recipe.codename,
        f'Dir::State "{apt}";',
        f'Dir::State::lists "{apt / "lists"}";',
        f'Dir::State::status "{root / "var/lib/dpkg/status"}";',
        f'Dir::Cache "{apt}";',
        f'Dir::Cache::archives "{root / "var/cache/apt/archives"}";',
    )
    with_apt = replace(job, environment=_environment(settings))
    job.progress("reading the lists of packages")
    with_apt.step(["apt-get", "-q", *_NOTHING_INSTALLED, "update"])
    if unknown := _unknown(recipe.packages, settings):
        raise ImageError("; ".join(map(no_package, unknown)), remedy=_NEWEST)
    with_apt.step(["sh", str(LAYER_PROGRAM), str(job.folder), *recipe.packages])
