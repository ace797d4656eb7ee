"""The images on this machine: where they are, which one is current, who uses them, and how one goes away."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.guests.image.locks import Lock
from vmlab.guests.image.recipe import NAME, Recipe, current
from vmlab.guests.image.sources import running_codename
from vmlab.model.errors import ImageError
from vmlab.model.places import cache_folder

MEND = "vmlab image build --force"
MANIFEST = "manifest.json"
FAILED_LOG = "failed-build.log"
USE_LOCK = "use.lock"
FILES = ("root.raw", "vmlinuz", "initrd.img")
"""What a guest boots from, beside the manifest."""

_UNFINISHED = ".building-"
_LEAVING = ".removing-"


@dataclass(frozen=True, slots=True)
class Image:
    """One finished image: a raw ext4 root disk, kernel, initrd, and the words that the kernel starts with."""

    id: str
    folder: Path
    disk: Path
    kernel: Path
    initrd: Path
    command_line: str
    manifest: Path


@dataclass(frozen=True, slots=True)
class ImageSummary:
    """A line of `vmlab image ls`. `bytes` is what it takes on disk, `created` seconds since the epoch.

    `current` says that this version of the program would use it; `in_use` that a run holds it.
    """

    id: str
    bytes: int
    created: float
    in_use: bool
    current: bool


def images_folder() -> Path:
    """Where images are, one folder each."""
    return cache_folder() / "images"


def current_recipe() -> Recipe:
    """The recipe that fits this machine. Raises ImageError where Debian does not run."""
    return current(running_codename())


def find() -> Image | None:
    """The current image, whole; None where it was not built yet. Raises ImageError when it is damaged."""
    folder = images_folder() / current_recipe().address()
    return load(folder) if folder.is_dir() else None


def load(folder: Path) -> Image:
    """The image in `folder`. Raises ImageError, naming the command that mends it, where sizes are wrong."""
    manifest = read_manifest(folder)
    for name in FILES:
        expected = manifest["files"][name]["size"]
        actual = (folder / name).stat().st_size if (folder / name).is_file() else None
        if actual != expected:
            found = "missing" if actual is None else f"{actual} bytes long and not {expected}"
            raise ImageError(f"guest image {folder.name} is damaged: {name} is {found}", remedy=MEND)
    disk, kernel, initrd = (folder / name for name in FILES)
    return Image(folder.name, folder, disk, kernel, initrd, str(manifest["command_line"]), folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an image. Raises ImageError where it cannot be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(manifest, dict) and manifest.keys() >= {"files", "command_line", "created"}:
            return manifest
    except (OSError, ValueError) as error:
        raise ImageError(f"guest image {folder.name} is damaged: {error}", remedy=MEND) from error
    raise ImageError(f"guest image {folder.name} is damaged: its manifest is not one", remedy=MEND)


def list_images() -> list[ImageSummary]:
    """All images on this machine, the newest first; a damaged one is listed with what is left of it."""
    folder = images_folder()
    address = current_recipe().address()
    found = [_summary(path, address) for path in folder.glob(f"{NAME}-*") if path.is_dir()] if folder.is_dir() else []
    return sorted(found, key=lambda image: image.created, reverse=True)


def _summary(folder: Path, address: str) -> ImageSummary:
    try:
        created = float(read_manifest(folder)["created"])
    except ImageError:
        created = folder.stat().st_mtime
    taken = sum(path.stat().st_blocks * 512 for path in folder.iterdir() if path.is_file())
    return ImageSummary(folder.name, taken, created, in_use(folder), folder.name == address)


def in_use(folder: Path) -> bool:
    """Whether somebody holds the image in `folder`."""
    lock = Lock.try_exclusive(folder / USE_LOCK)
    if lock is None:
        return True
    lock.release()
    return False


@contextmanager
def hold(image: Image) -> Iterator[Image]:
    """Keep the image from being removed while the context lasts. Raises ImageError where it has gone already."""
    lock = Lock.shared(image.folder / USE_LOCK)
    if lock is None:
        raise ImageError(f"guest image {image.id} was removed just now", remedy="vmlab image build")
    try:
        yield image
    finally:
        lock.release()


def remove(id: str) -> None:
    """Delete an image. Raises ImageError where there is none of that id, or when a run uses it."""
    folder = images_folder() / id
    known = {path.name for path in images_folder().glob(f"{NAME}-*")} if images_folder().is_dir() else set()
    if id not in known:
        raise ImageError(f"there is no guest image {id!r}", remedy="vmlab image ls tells which there are")
    retire(folder)


def retire(folder: Path) -> None:
    """Take an image out of the catalog, then delete it. Raises ImageError when a run uses it."""
    lock = Lock.try_exclusive(folder / USE_LOCK)
    if lock is None:
        raise ImageError(f"guest image {folder.name} is in use by a run", remedy="wait for the run, or vmlab stop")
    try:
        leaving = folder.with_name(f"{_LEAVING}{folder.name}-{os.getpid()}")
        folder.rename(leaving)
        shutil.rmtree(leaving)
    finally:
        lock.release()


def unfinished_folder(id: str) -> Path:
    """A new folder for a build, beside the images; only a holder of the build's lock may ask for one."""
    return Path(tempfile.mkdtemp(prefix=f"{_UNFINISHED}{id}-", dir=images_folder()))


def leftovers() -> list[Path]:
    """Folders of builds and removals that did not come to their end; for a holder of the build's lock alone."""
    folder = images_folder()
    unfinished = list(folder.glob(f"{_UNFINISHED}*"))
    return unfinished + [path for path in folder.glob(f"{_LEAVING}*") if not in_use(path)]
