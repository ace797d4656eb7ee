"""The images on this machine: which one is current, whether each is intact and in use; and their removal.

The licences of the packages that an image is made of are as Debian's copyright files name them. An image
is carried to another host in one file.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from vmlab.guests.cached.collection import Collection, Kept, Notice
from vmlab.guests.cached.manifest import MANIFEST, Fault, digests_in, require_sizes
from vmlab.guests.image.recipe import ImageRecipe, LayerRecipe, current, running_codename
from vmlab.guests.image.steps import stoppable
from vmlab.integrity.digests import FileDigests, describe, unseal
from vmlab.integrity.long_work import PIECE, LongWork, pieces
from vmlab.model.checked import Condition, Keys, check_of
from vmlab.model.errors import ImageError, in_one_line
from vmlab.model.quantities import format_bytes
from vmlab.system.file_system import demand_usable
from vmlab.system.given_file import new_file, open_given

MEND = "vmlab image build --force"
SCHEMA = "vmlab.image/2"
FAILED_LOG = "failed-build.log"
FILES = ("root.raw", "vmlinuz", "initrd.img")
"""The files that a guest boots from, beside the manifest."""


class _Images(Collection):
    name = "images"
    noun = "guest image"
    command = "vmlab image ls"
    schema = SCHEMA
    needed = frozenset({"files", "command_line", "created"})
    unfinished = ".building-"
    refused = ImageError

    def damaged(self, folder: Path, fault: str) -> ImageError:
        remedy = " ".join((MEND, *(f"--with {name}" for name in _packages_of(folder))))
        return ImageError(f"guest image {folder.name} is damaged: {fault}", remedy=remedy)

    def gone(self, id: str) -> ImageError:
        return ImageError(f"guest image {id} was removed just now", remedy="vmlab image build")


IMAGES = _Images()


def _packages_of(folder: Path) -> tuple[str, ...]:
    """Those of the layer in `folder`; none for an image, and where nothing tells."""
    try:
        layer = LayerRecipe.of(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ()
    return () if layer is None else layer.packages


@dataclass(frozen=True, slots=True)
class Image(Kept):
    """One finished image: a raw ext4 root disk, kernel, initrd, and the kernel's command line.

    `files` has the digests of the three, by name.
    """

    collection: ClassVar[Collection] = IMAGES
    id: str
    folder: Path
    disk: Path
    kernel: Path
    initrd: Path
    command_line: str
    manifest: Path
    files: Mapping[str, FileDigests]


@dataclass(frozen=True, slots=True)
class ImageSummary:
    """A line of `vmlab image ls`. `bytes` is what it takes on disk, `created` seconds since the epoch.

    `current` says that this version of the program would use it; `in_use` that a run holds it. A layer has `packages`.
    An added image has a `name`, and a `user` unless it is damaged.
    """

    id: str
    bytes: int
    created: float
    in_use: bool
    current: bool = False
    name: str | None = None
    user: str | None = None
    packages: tuple[str, ...] = ()


def images_folder() -> Path:
    """Where images are, one folder each."""
    return IMAGES.folder()


def own_recipe() -> ImageRecipe:
    """The recipe that this machine can build. Raises ImageError where Debian does not run."""
    return current(running_codename())


def current_recipe() -> ImageRecipe:
    """The recipe of the image that guests start from: this machine's own, unless only an imported one is there.

    Raises ImageError where there is none and Debian does not run.
    """
    try:
        own = own_recipe()
    except ImageError as error:
        if (imported := _imported()) is None:
            raise ImageError(str(error), remedy="vmlab image import FILE, an image that another host built") from error
        return imported
    return own if (images_folder() / own.address()).is_dir() else _imported() or own


def _imported() -> ImageRecipe | None:
    """The recipe of the newest image that this version would build on another release of Debian."""
    for entry in sorted(IMAGES.entries(), key=lambda entry: entry.created, reverse=True):
        if entry.manifest is not None and "recipe" in entry.manifest:
            recipe = recipe_of(entry.manifest)
            if recipe.address() == entry.id:
                return recipe
    return None


def recipe_of(manifest: Mapping[str, Any]) -> ImageRecipe:
    """What this version of the program would build for the release of an image. Raises KeyError, TypeError."""
    return current(str(manifest["recipe"]["codename"]))


def find() -> Image | None:
    """The current image; None where it was not built yet. Raises ImageError as `load` does."""
    folder = images_folder() / current_recipe().address()
    return load(folder) if folder.is_dir() else None


def disk_size() -> int | None:
    """How large the current image's disk is, in bytes; None where there is none."""
    try:
        return (images_folder() / current_recipe().address() / FILES[0]).stat().st_size
    except (ImageError, OSError):
        return None


def load(folder: Path) -> Image:
    """The image in `folder`; only its sizes are checked, see `Kept.require_whole`.

    Raises ImageError, with the command that repairs it, where sizes are wrong or the manifest was changed.
    """
    manifest = IMAGES.read(folder)
    with IMAGES.naming(folder):
        require_sizes(folder, {name: manifest["files"][name]["size"] for name in FILES})
        files = digests_in(manifest)
    disk, kernel, initrd = (folder / name for name in FILES)
    return Image(folder.name, folder, disk, kernel, initrd, str(manifest["command_line"]), folder / MANIFEST, files)


def list_images() -> list[ImageSummary]:
    """All images on this machine, the newest first; a damaged one is listed with what is left of it."""
    address, entries = current_recipe().address(), IMAGES.entries()
    disk = next((_disk_digest(one.manifest) for one in entries if one.id == address and one.manifest), None)
    found = []
    for one in entries:
        layer = LayerRecipe.of(one.manifest or {})
        is_current = one.id == address
        if layer is not None:
            is_current = (layer.base, layer.base_sha256, layer.address()) == (address, disk, one.id)
        packages = () if layer is None else layer.packages
        found.append(ImageSummary(one.id, one.bytes, one.created, one.in_use, is_current, packages=packages))
    return sorted(found, key=lambda image: image.created, reverse=True)


def _disk_digest(manifest: Mapping[str, Any]) -> str:
    return str(manifest["files"][FILES[0]]["sha256"])


DOCS = "usr/share/doc"
_MOST = 4 * 2**20
"""Bytes that are read of a copyright file."""
_FIELD = re.compile(r"^License:[ \t]*(\S[^\n]*)$", re.MULTILINE | re.IGNORECASE)
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9][A-Za-z0-9.+-]*[A-Za-z0-9+])")


@dataclass(frozen=True, slots=True)
class Package:
    """A package in an image; `licences` is empty where Debian names none in a form that programs read."""

    name: str
    version: str
    licences: tuple[str, ...]


def packages_of(image: Image) -> list[Package]:
    """What an image is made of, by name. Raises ImageError for one that was built before licences were kept."""
    manifest = IMAGES.read(image.folder)
    if "licences" not in manifest:
        raise ImageError(f"guest image {image.id} was built by a vmlab that kept no licences", remedy=MEND)
    named = manifest["licences"]
    return [Package(name, str(version), tuple(named.get(name, ()))) for name, version in manifest["packages"].items()]


def licences(tree: Path, packages: Iterable[str]) -> dict[str, list[str]]:
    """The names of the licences of each of `packages`, which are installed in `tree`.

    They are those of the fields `License` in a copyright file that programs can read (Debian's DEP 5), of another one
    the common licences that it refers to; none where it names neither, or is missing.
    """
    return {package: named(_copyright(tree, package)) for package in packages}


def named(text: str) -> list[str]:
    """The licences that a copyright file names, each once, in alphabetical order."""
    found = {" ".join(name.split()) for name in _FIELD.findall(text)} if text.startswith("Format:") else set()
    return sorted(found or set(_COMMON.findall(text)), key=lambda name: (name.lower(), name))


def _copyright(tree: Path, package: str) -> str:
    """The text, also where the package has that of another one by a link; links lead nowhere out of `tree`."""
    place = f"{DOCS}/{package}"
    for _ in range(8):
        folder = tree / place
        if not folder.is_symlink():
            break
        place = os.path.normpath(Path("/", place).parent / folder.readlink()).lstrip("/")
    file = tree / place / "copyright"
    if file.is_symlink() or any((tree / part).is_symlink() for part in (Path(place), *Path(place).parents)):
        return ""
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""


_HEAD = struct.Struct(">4sI")
_MAGIC = b"VMI1"
_MOST_MANIFEST = 16 * 2**20
_MOST_BYTES = 64 * 2**30
_KEYS = {"id": str, "command_line": str, "packages": dict[str, str], "licences": dict[str, list[str]]}
_is_whole = check_of(
    Annotated[dict[str, Any], Keys(_KEYS), Condition(lambda values: values.keys() >= {"id", "command_line"})]
)
_LEVEL = 1
"""Of gzip: a disk image shrinks to less than half at the rate of a disk."""


def pack(image: Image, target: Path) -> None:
    """Write `image` to the file `target`, which appears when it is complete. Raises ImageError where it is damaged."""
    size = sum(digests.size for digests in image.files.values())
    manifest = image.manifest.read_bytes()
    with (
        stoppable(f"the export of image {image.id}") as work,
        new_file(target) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=_LEVEL, mtime=0) as packed,
    ):
        work.begin(f"checking image {image.id}", size)
        image.require_whole()
        work.begin(f"writing {target}", size)
        packed.write(_HEAD.pack(_MAGIC, len(manifest)) + manifest)
        for name in FILES:
            with (image.folder / name).open("rb") as content:
                for data in pieces(content, work):
                    packed.write(data)


def unpack(source: Path, notice: Notice) -> Image:
    """Keep the image in the file `source`; it was checked byte by byte against its manifest.

    Raises UsageError for what is no ordinary file, ImageError for one that is no image, is damaged, does not fit the
    disk, or that this version of the program would not use.
    """
    with stoppable(f"the import of {source}") as work, open_given(source) as file:
        try:
            with gzip.GzipFile(fileobj=file, mode="rb") as packed:
                return _kept(packed, source, notice, work)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise ImageError(f"{source} is no guest image, or is not complete: {error}") from error
        except OSError as error:
            raise ImageError(f"the guest image could not be kept: {in_one_line(error)}") from error


def _kept(packed: gzip.GzipFile, source: Path, notice: Notice, work: LongWork) -> Image:
    values = _manifest(packed, source)
    id, files = str(values["id"]), digests_in(values)
    base, layer = recipe_of(values).address(), LayerRecipe.of(values)
    if id != (base if layer is None or layer.base != base else layer.address()):
        raise ImageError(f"{source}: image {id} is not one that this version of vmlab uses", remedy="vmlab image build")
    if layer is not None and not _is_here(layer):
        words = f"{source}: layer {id} is on top of an image {layer.base} that is not here"
        raise ImageError(words, remedy="import that image first, from the host that the layer is from")
    final = images_folder() / id
    if final.is_dir():
        notice(f"image {id} is there already")
        return load(final)
    size = sum(files[name].size for name in FILES)
    demand_usable(images_folder())
    free = shutil.disk_usage(images_folder()).free
    if size > min(free, _MOST_BYTES):
        raise ImageError(f"{source}: the image has {format_bytes(size)}, and {format_bytes(free)} are free")
    with IMAGES.begun(id, IMAGES.gate(), notice) as folder:
        work.begin(f"reading image {id}", size)
        for name in FILES:
            _take(packed, folder / name, files[name], work)
        work.begin("checking the files", size)
        for name in FILES:
            if describe(folder / name, work) != files[name]:
                raise ImageError(f"{source} is damaged: {name} is not what its manifest says")
        kept = {name: value for name, value in values.items() if name not in _OF_ITS_HOST}
        IMAGES.seal(folder, id, files, kept)
        folder.chmod(0o755)
        IMAGES.keep(folder, id)
    return load(final)


_OF_ITS_HOST = ("schema", "id", "created", "files", "build_seconds")
"""What the manifest of an image that came from another host does not keep, or has anew."""


def _is_here(layer: LayerRecipe) -> bool:
    """Whether the image below a layer is here, with the bytes that it had."""
    manifests = (one.manifest for one in IMAGES.entries() if one.id == layer.base)
    return any(one is not None and _disk_digest(one) == layer.base_sha256 for one in manifests)


def _manifest(packed: gzip.GzipFile, source: Path) -> dict[str, Any]:
    magic, length = _HEAD.unpack(_exactly(packed, _HEAD.size))
    if magic != _MAGIC or length > _MOST_MANIFEST:
        raise ImageError(f"{source} is no guest image that vmlab exported")
    text = _exactly(packed, length)
    try:
        values = unseal(text)
        if not _is_whole(values) or not digests_in(values).keys() >= set(FILES):
            raise Fault("it lacks what every image has")
        recipe_of(values)
        LayerRecipe.of(values)
    except (Fault, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ImageError(f"{source} is damaged: its manifest is not what was written") from error
    return values


def _exactly(packed: gzip.GzipFile, size: int) -> bytes:
    data = packed.read(size)
    if len(data) < size:
        raise EOFError("it ends too early")
    return data


def _take(packed: gzip.GzipFile, target: Path, digests: FileDigests, work: LongWork) -> None:
    """Write one file; blocks of zeros stay holes."""
    left = digests.size
    with target.open("wb") as file:
        while left:
            data = _exactly(packed, min(PIECE, left))
            work.step(len(data))
            left -= len(data)
            if any(data):
                file.write(data)
            else:
                file.seek(len(data), os.SEEK_CUR)
        file.truncate(digests.size)
