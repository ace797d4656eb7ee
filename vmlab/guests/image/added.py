"""Users' own images on this machine: known by name, each a copy whose every byte is compared with its digests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from vmlab.guests.cached.collection import Collection, Kept
from vmlab.guests.cached.manifest import digests_in, require_sizes
from vmlab.guests.image.catalog import ImageSummary
from vmlab.integrity.digests import FileDigests
from vmlab.model.errors import ImageError, UsageError
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.model.scenarios.image_name import check_image_name

SCHEMA = "vmlab.added-image/1"
DISK = "disk.raw"
KERNEL = "vmlinuz"
INITRD = "initrd.img"
KEY = "key"
"""The private key, readable for its owner alone."""

System = Literal["linux", "windows"]
"""What runs in an image's guests."""

_DIGITS = 12
_BUILT = re.compile(r"vmlab-[0-9a-f]{12}")
"""The ids of images that vmlab builds."""


class _Added(Collection):
    name = "added-images"
    noun = "guest image"
    command = "vmlab image ls"
    schema = SCHEMA
    needed = frozenset({"files", "created", "name", "user", "command_line"})
    unfinished = ".adding-"
    refused = ImageError

    def damaged(self, folder: Path, fault: str) -> ImageError:
        remedy = f"vmlab image rm {_name_in(folder.name)}, and add it again"
        return ImageError(f"guest image {folder.name} is damaged: {fault}", remedy=remedy)

    def gone(self, id: str) -> ImageError:
        return ImageError(f"guest image {id} was removed just now", remedy="vmlab image add")


ADDED = _Added()


@dataclass(frozen=True, slots=True)
class AddedImage(Kept):
    """One image that a user has added: a raw disk, and how to log in to a guest of it.

    Without `kernel` a guest boots as its disk says. `user` logs in over SSH with the private key in the file `key`.
    `files` has the digests of all files, by name, and `size` is the disk's in bytes. `programs` has, for each program
    that was looked for when it was added, whether it is there; nothing where the disk could not be looked at.
    """

    collection: ClassVar[Collection] = ADDED
    id: str
    name: str
    folder: Path
    disk: Path
    kernel: Path | None
    initrd: Path | None
    command_line: str
    user: str
    key: Path
    size: int
    files: Mapping[str, FileDigests]
    programs: Mapping[str, bool] = field(default_factory=dict)
    system: System = "linux"


def id_of(name: str, disk: FileDigests) -> str:
    """The id of the image `name` with this disk, which is also the name of its folder."""
    return f"{name}-{disk.sha256[:_DIGITS]}"


def _name_in(id: str) -> str:
    return id.rpartition("-")[0]


def check_new_name(name: str) -> None:
    """Raises UsageError for a name that an added image cannot have."""
    try:
        check_image_name(name)
    except ValueError as error:
        raise UsageError(f"the image's name {name[:40]!r} {error}") from error
    if name == LAB_IMAGE or _BUILT.fullmatch(name):
        raise UsageError(f"the image's name {name!r} is taken: vmlab's own image is called so")


def is_taken(name: str) -> bool:
    """Whether there is an image of that name, damaged or not."""
    return _folder_of(name) is not None


def find(name: str) -> AddedImage | None:
    """The image of that name; None where there is none. Raises ImageError as `load` does."""
    folder = _folder_of(name)
    return None if folder is None else load(folder)


def require(name: str) -> AddedImage:
    """As `find`, but raises ImageError where there is none."""
    found = find(name)
    if found is None:
        raise ImageError(f"there is no guest image {name[:40]!r}", remedy="vmlab image add makes one known")
    return found


def load(folder: Path) -> AddedImage:
    """The image in `folder`; only its sizes are checked, see `Kept.require_whole`. Raises ImageError."""
    manifest = ADDED.read(folder)
    with ADDED.naming(folder):
        files = digests_in(manifest)
        require_sizes(folder, {name: digests.size for name, digests in files.items()})
    return AddedImage(
        id=folder.name,
        name=str(manifest["name"]),
        folder=folder,
        disk=folder / DISK,
        kernel=folder / KERNEL if KERNEL in files else None,
        initrd=folder / INITRD if INITRD in files else None,
        command_line=str(manifest["command_line"]),
        user=str(manifest["user"]),
        key=folder / KEY,
        size=files[DISK].size,
        files=files,
        programs=_programs_in(manifest),
        system=_system_in(manifest),
    )


def list_added() -> list[ImageSummary]:
    """All added images on this machine, by name; a damaged one is listed with what is left of it."""
    found = sorted(ADDED.entries(), key=lambda one: one.id)
    users = [None if one.manifest is None else str(one.manifest["user"]) for one in found]
    return [
        ImageSummary(one.id, one.bytes, one.created, one.in_use, name=_name_in(one.id), user=user or None)
        for one, user in zip(found, users, strict=True)
    ]


def _manifests() -> list[Mapping[str, Any]]:
    """Those of the whole images."""
    return [one.manifest for one in ADDED.entries() if one.manifest is not None]


def disk_sizes() -> dict[str, int]:
    """The size of each whole image's disk in bytes, by the image's name."""
    return {str(one["name"]): int(one["files"][DISK]["size"]) for one in _manifests()}


def lacked_programs() -> dict[str, list[str]]:
    """What each whole image is known to lack, by the image's name; images that lack nothing are left out."""
    lacked = {
        str(one["name"]): [name for name, there in _programs_in(one).items() if not there] for one in _manifests()
    }
    return {name: programs for name, programs in lacked.items() if programs}


def _programs_in(manifest: Mapping[str, Any]) -> dict[str, bool]:
    """Images that were added before programs were looked for have none in their manifest."""
    return dict(manifest.get("programs") or {})


def windows_images() -> tuple[str, ...]:
    """The names of the whole images whose guests run Windows."""
    return tuple(str(one["name"]) for one in _manifests() if _system_in(one) == "windows")


def _system_in(manifest: Mapping[str, Any]) -> System:
    """Images that were added before there was a choice have Linux."""
    return cast(System, manifest.get("system", "linux"))


def remove(name: str) -> bool:
    """Delete the image of that name; False where there is none. Raises ImageError when a run uses it, and OSError."""
    folder = _folder_of(name)
    if folder is not None:
        ADDED.remove(folder.name)
    return folder is not None


def _folder_of(name: str) -> Path | None:
    return next((ADDED.folder() / one.id for one in list_added() if one.name == name), None)
