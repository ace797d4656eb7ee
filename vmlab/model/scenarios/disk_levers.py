"""Values of a guest's attributes on how QEMU drives its disks, and which of them do not go together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from vmlab.model.run import CACHE_FLAGS, CacheMode

if TYPE_CHECKING:
    from vmlab.model.scenarios.guest import GuestAttributes

DiskIo = Literal["threads", "native", "io_uring"]
DiskPlace = Literal["root", "data"]
"""The disks of a guest: its first one, and its data disk."""

_IOTHREAD_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}", re.ASCII)


def _iothread(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, str) and _IOTHREAD_NAME.fullmatch(value)):
        return value
    raise ValueError("needs true, false, or a name for one that disks share: small letters, digits and dashes")


IoThread = Annotated[
    bool | str,
    BeforeValidator(_iothread),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": f"^{_IOTHREAD_NAME.pattern}$"}]}),
]


def io_conflict(guest: GuestAttributes) -> str | None:
    """Why the disks that have their I/O from the key ``io`` cannot have it."""
    modes = [guest.cache]
    if guest.data_bytes is not None and guest.data_io is None and guest.pool is None:
        modes.append(guest.data_mode)
    return next(filter(None, (_with_cache("io", guest.io, mode) for mode in modes)), None)


def data_io_conflict(guest: GuestAttributes) -> str | None:
    """The same of the key ``data_io``."""
    if guest.data_io is None:
        return None
    if guest.pool is not None:
        return f"data_io is of files and devices of the host, and the data disk is in pool {guest.pool}"
    return _with_cache("data_io", guest.data_io, guest.data_mode)


def _with_cache(key: str, io: DiskIo, mode: CacheMode) -> str | None:
    # QEMU opens no file so: "aio=native was specified, but it requires cache.direct=on" (block/file-posix.c).
    if io != "native" or CACHE_FLAGS[mode].direct:
        return None
    direct = " or ".join(name for name, flags in CACHE_FLAGS.items() if flags.direct)
    return f"{key}: native needs O_DIRECT, which cache mode {mode} does not have; use {direct}, or another {key}"
