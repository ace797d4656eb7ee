"""Guest images in one file, to be carried to another host.

The file is a gzip stream: eight bytes with the manifest's length, the manifest as it stands beside the image, and the
image's files in the order of `FILES`, whose sizes the manifest has. So nothing in it is named or sized by anything but
a manifest of bounded length.
"""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

from vmlab.guests.cached.collection import Notice
from vmlab.guests.cached.manifest import Fault, digests_in
from vmlab.guests.image import catalog
from vmlab.guests.image.catalog import FILES, IMAGES, Image
from vmlab.guests.image.steps import stoppable
from vmlab.integrity import FileDigests, LongWork, pieces
from vmlab.integrity.digests import describe, unseal
from vmlab.integrity.long_work import PIECE
from vmlab.model.errors import ImageError, in_one_line
from vmlab.model.units import format_bytes
from vmlab.system.file_system import demand_usable
from vmlab.system.given_file import new_file, open_given

_HEAD = struct.Struct(">4sI")
_MAGIC = b"VMI1"
_MOST_MANIFEST = 16 * 2**20
_MOST_BYTES = 64 * 2**30
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
    if id != catalog.recipe_of(values).address():
        raise ImageError(f"{source}: image {id} is not one that this version of vmlab uses", remedy="vmlab image build")
    final = catalog.images_folder() / id
    if final.is_dir():
        notice(f"image {id} is there already")
        return catalog.load(final)
    size = sum(files[name].size for name in FILES)
    demand_usable(catalog.images_folder())
    free = shutil.disk_usage(catalog.images_folder()).free
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
        kept = {name: value for name, value in values.items() if name not in ("schema", "id", "created", "files")}
        IMAGES.seal(folder, id, files, kept)
        folder.chmod(0o755)
        IMAGES.keep(folder, id)
    return catalog.load(final)


def _manifest(packed: gzip.GzipFile, source: Path) -> dict[str, Any]:
    magic, length = _HEAD.unpack(_exactly(packed, _HEAD.size))
    if magic != _MAGIC or length > _MOST_MANIFEST:
        raise ImageError(f"{source} is no guest image that vmlab exported")
    text = _exactly(packed, length)
    try:
        values = unseal(text)
        digests_in(values)
        catalog.recipe_of(values)
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
