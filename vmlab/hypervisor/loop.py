"""Read-only loop devices that clear themselves, through the kernel's own interface (linux/loop.h)."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

_CONTROL = "/dev/loop-control"
_CTL_GET_FREE = 0x4C82
_CONFIGURE = 0x4C0A
_GET_STATUS = 0x4C05
_CLEAR = 0x4C01
_READ_ONLY = 1
_AUTOCLEAR = 4
_INFO = struct.Struct("=5Q4I64s64s32s2Q")
_CONFIG_HEAD = struct.Struct("=2I")
_CONFIG_TAIL = bytes(64)
_NAME_FIELD = 9
_TRIES = 10


def attach(file: Path, mark: str) -> int:
    """Open a fresh loop device on `file`, read-only; a file descriptor of the device.

    The device goes by itself when it is neither open nor mounted any more. `mark` (at most 63 bytes) is kept in the
    device and tells the lab's from others'. Raises OSError.
    """
    backing = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _configure_any(backing, _config(backing, mark))
    finally:
        os.close(backing)


def _config(backing: int, mark: str) -> bytes:
    flags = _READ_ONLY | _AUTOCLEAR
    information = _INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, flags, mark.encode()[:63], b"", b"", 0, 0)
    return _CONFIG_HEAD.pack(backing, 0) + information + _CONFIG_TAIL


def _configure_any(backing: int, config: bytes) -> int:
    for _ in range(_TRIES):
        device = os.open(_free_device(), os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, _CONFIGURE, config)
        except OSError as error:
            os.close(device)
            # Someone else took the device between the two calls.
            if error.errno != errno.EBUSY:
                raise
        else:
            return device
    raise OSError(errno.EBUSY, "no free loop device", _CONTROL)


def _free_device() -> str:
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        return f"/dev/loop{fcntl.ioctl(control, _CTL_GET_FREE)}"
    finally:
        os.close(control)


def clear_marked(mark: str) -> list[str]:
    """Detach the loop devices that carry `mark`; their paths. A device in use goes with its last user."""
    cleared = []
    for name in sorted(path.parent.parent.name for path in Path("/sys/block").glob("loop*/loop/backing_file")):
        device = os.open(f"/dev/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _mark_of(device) == mark:
                fcntl.ioctl(device, _CLEAR)
                cleared.append(f"/dev/{name}")
        finally:
            os.close(device)
    return cleared


def _mark_of(device: int) -> str | None:
    try:
        raw = fcntl.ioctl(device, _GET_STATUS, bytes(_INFO.size))
    except OSError:
        return None
    name: bytes = _INFO.unpack(raw)[_NAME_FIELD]
    return name.rstrip(b"\0").decode(errors="replace")
