"""Loop devices that the kernel removes after use (autoclear), through its own interface (linux/loop.h)."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from vmlab.hypervisor.open_files import file_below
from vmlab.system.descriptors import closed_after

_CONTROL = "/dev/loop-control"
_CTL_GET_FREE = 0x4C82
_CONFIGURE = 0x4C0A
_GET_STATUS = 0x4C05
_CLEAR = 0x4C01
_READ_ONLY = 1
_AUTOCLEAR = 4
_DIRECT_IO = 16
_INFO = struct.Struct("=5Q4I64s64s32s2Q")
_CONFIG_HEAD = struct.Struct("=2I")
_CONFIG_TAIL = bytes(64)
_NAME_FIELD = 9
_TRIES = 10
_LONGEST_MARK = 63
SECTORS = (512, 4096)
"""The sizes of a device's sectors that are tried, in this order."""


def attach(
    file: Path, mark: str, *, writable: bool = False, direct: bool = False, sectors: Iterable[int] = SECTORS
) -> int:
    """Open a fresh loop device on `file`; a file descriptor of the device.

    The device is removed when it is neither open nor mounted any more. `mark` (at most 63 bytes) is kept in the device
    and distinguishes the lab's devices from others. With `direct` it reads and writes the file past the page cache.
    Raises OSError, EINVAL where the file cannot be opened in that way.
    """
    access = os.O_RDWR if writable else os.O_RDONLY
    flags = _AUTOCLEAR | (0 if writable else _READ_ONLY) | (_DIRECT_IO if direct else 0)
    with closed_after(os.open(file, access | os.O_CLOEXEC)) as backing:
        # A device with smaller sectors than the disk's gets no direct I/O, without an error from the kernel.
        for sector in sectors:
            device = _configure_any(access, _config(backing, mark, flags, sector))
            if not direct or is_direct(Path(f"/proc/self/fd/{device}").readlink()):
                return device
            detach(device)
        raise OSError(errno.EINVAL, "no direct I/O for a loop device", str(file))


def detach(device: int) -> None:
    """Close the descriptor of a device from `attach` and have the device removed after its last use. Raises OSError."""
    try:
        fcntl.ioctl(device, _CLEAR)
    except OSError as error:
        # It was removed already.
        if error.errno != errno.ENXIO:
            raise
    finally:
        os.close(device)


def is_direct(device: Path) -> bool:
    """Whether a loop device reads and writes its file past the page cache. False for one that is not attached."""
    try:
        return Path("/sys/block", device.name, "loop/dio").read_text().rstrip("\n") == "1"
    except OSError:
        return False


def file_of(device: Path) -> str:
    """The path of the file that a loop device is on, as the kernel gives it; empty for one that is not attached."""
    return str(file_below(device.name) or "")


def _config(backing: int, mark: str, flags: int, sector: int) -> bytes:
    information = _INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, flags, mark.encode()[:_LONGEST_MARK], b"", b"", 0, 0)
    return _CONFIG_HEAD.pack(backing, sector) + information + _CONFIG_TAIL


def _configure_any(access: int, config: bytes) -> int:
    for _ in range(_TRIES):
        device = os.open(_free_device(), access | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, _CONFIGURE, config)
        except OSError as error:
            os.close(device)
            # Another program took the device between the two calls.
            if error.errno != errno.EBUSY:
                raise
        else:
            return device
    raise OSError(errno.EBUSY, "no free loop device", _CONTROL)


def _free_device() -> str:
    with closed_after(os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)) as control:
        return f"/dev/loop{fcntl.ioctl(control, _CTL_GET_FREE)}"


def mark_of(lab: str) -> str:
    """The mark of the devices of `lab`, as long as the kernel keeps one."""
    return f"vmlab:{lab}"[:_LONGEST_MARK]


def marked(mark: str, *, clear: bool = False) -> list[str]:
    """Paths of the loop devices that carry `mark`; with `clear` they are detached, one in use after its last use."""
    found = []
    for name in sorted(path.parent.parent.name for path in Path("/sys/block").glob("loop*/loop/backing_file")):
        with closed_after(os.open(f"/dev/{name}", os.O_RDONLY | os.O_CLOEXEC)) as device:
            if _mark_of(device) == mark:
                if clear:
                    fcntl.ioctl(device, _CLEAR)
                found.append(f"/dev/{name}")
    return found


def _mark_of(device: int) -> str | None:
    try:
        raw = fcntl.ioctl(device, _GET_STATUS, bytes(_INFO.size))
    except OSError:
        return None
    name: bytes = _INFO.unpack(raw)[_NAME_FIELD]
    return name.rstrip(b"\0").decode(errors="replace")
