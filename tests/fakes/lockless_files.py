"""A file system that passes everything through to a folder and answers every lock with an error, as an NFS without
its lock daemon does: FUSE's own protocol (linux/fuse.h, 7.31), as libraries for it leave locks to the kernel.

``python -m tests.fakes.lockless_files FOLDER ERROR PROGRAM…`` mounts it over FOLDER in a mount namespace of its own, in
which PROGRAM runs; its exit code is that of PROGRAM. ERROR is the name of an errno such as ENOLCK, for both kinds of
locks, or with ``flock:`` or ``fcntl:`` before it for one. The mount and its server go with the namespace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path

_HEADER = struct.Struct("<IIQQIII4x")
_ATTR = struct.Struct("<QQQQQQIIIIIIIIII")
_POSIX, _FLOCK = 1 << 1, 1 << 10
_MOST = 2**16


class _Served:
    """The open requests' state: which path each node has, and which files are open."""

    def __init__(self, folder: Path, error: int) -> None:
        self.root = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        self.error = error
        self.paths = {1: "."}
        self.nodes = {".": 1}
        self.last = 1

    def path(self, node: int, name: bytes = b"") -> str:
        base = self.paths[node]
        return f"{base}/{os.fsdecode(name)}" if name else base

    def attr(self, found: os.stat_result) -> bytes:
        times = [getattr(found, f"st_{which}time_ns") for which in "amc"]
        return _ATTR.pack(
            *(found.st_ino, found.st_size, found.st_blocks, *(at // 10**9 for at in times)),
            *(at % 10**9 for at in times),
            *(found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_rdev, 4096, 0),
        )

    def entry(self, path: str) -> bytes:
        found = os.lstat(self.at(path))
        if path not in self.nodes:
            self.last += 1
            self.nodes[path], self.paths[self.last] = self.last, path
        return struct.pack("<QQQQII", self.nodes[path], 0, 0, 0, 0, 0) + self.attr(found)

    def at(self, path: str) -> str:
        return f"/proc/self/fd/{self.root}/{path}"

    def answer(self, code: int, node: int, body: bytes) -> bytes | None:
        """What a request gets; None for those without an answer. Raises OSError."""
        kind = _CODES.get(code)
        if kind is None:
            raise OSError(errno.ENOSYS, "")
        done: bytes | None = getattr(self, f"on_{kind}")(node, body)
        return done

    def on_init(self, node: int, body: bytes) -> bytes:
        _, _, ahead, flags = struct.unpack_from("<IIII", body)
        kept = flags & (1 << 3 | 1 << 5 | (_FLOCK | _POSIX))
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, ahead, kept & self.locks, 12, 9, _MOST, 1, 0, 0, 0)

    locks = ~0

    def on_forget(self, node: int, body: bytes) -> None:
        return None

    def on_lookup(self, node: int, body: bytes) -> bytes:
        return self.entry(self.path(node, body[:-1]))

    def on_getattr(self, node: int, body: bytes) -> bytes:
        flags, handle = struct.unpack_from("<I4xQ", body)
        found = os.fstat(handle) if flags & 1 else os.lstat(self.at(self.path(node)))
        return bytes(16) + self.attr(found)

    def on_setattr(self, node: int, body: bytes) -> bytes:
        valid, handle, size, _, accessed, changed = struct.unpack_from("<I4xQQQQQ", body)
        mode, _, uid, gid = struct.unpack_from("<IIII", body, 68)
        path = self.at(self.path(node))
        if valid & 1:
            Path(path).chmod(stat.S_IMODE(mode))
        if valid & 6:
            os.lchown(path, uid if valid & 2 else -1, gid if valid & 4 else -1)
        if valid & 8:
            os.truncate(handle if valid & 64 else path, size)
        if valid & 0x1B0:
            os.utime(path, (accessed, changed) if not valid & 0x180 else None, follow_symlinks=False)
        return bytes(16) + self.attr(os.lstat(path))

    def on_readlink(self, node: int, body: bytes) -> bytes:
        return os.fsencode(Path(self.at(self.path(node))).readlink())

    def on_symlink(self, node: int, body: bytes) -> bytes:
        name, target = body[:-1].split(b"\0")
        path = self.path(node, name)
        Path(self.at(path)).symlink_to(os.fsdecode(target))
        return self.entry(path)

    def on_mknod(self, node: int, body: bytes) -> bytes:
        path = self.path(node, body[16:-1])
        os.mknod(self.at(path), struct.unpack_from("<I", body)[0])
        return self.entry(path)

    def on_mkdir(self, node: int, body: bytes) -> bytes:
        path = self.path(node, body[8:-1])
        Path(self.at(path)).mkdir(struct.unpack_from("<I", body)[0])
        return self.entry(path)

    def on_unlink(self, node: int, body: bytes) -> bytes:
        path = self.path(node, body[:-1])
        Path(self.at(path)).unlink()
        return self._gone(path)

    def on_rmdir(self, node: int, body: bytes) -> bytes:
        path = self.path(node, body[:-1])
        Path(self.at(path)).rmdir()
        return self._gone(path)

    def _gone(self, path: str) -> bytes:
        self.nodes.pop(path, None)
        return b""

    def on_rename(self, node: int, body: bytes, start: int = 8) -> bytes:
        old, new = body[start:-1].split(b"\0")
        before, after = self.path(node, old), self.path(struct.unpack_from("<Q", body)[0], new)
        Path(self.at(before)).rename(self.at(after))
        self._gone(after)
        for known, its in [*self.paths.items()]:
            if its == before or its.startswith(f"{before}/"):
                self.nodes.pop(its, None)
                self.paths[known] = after + its.removeprefix(before)
                self.nodes[self.paths[known]] = known
        return b""

    def on_rename2(self, node: int, body: bytes) -> bytes:
        return self.on_rename(node, body, 16)

    def on_open(self, node: int, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body)[0]
        return struct.pack("<QI4x", os.open(self.at(self.path(node)), flags & ~os.O_NOFOLLOW & ~os.O_DIRECT), 0)

    def on_create(self, node: int, body: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", body)
        path = self.path(node, body[16:-1])
        handle = os.open(self.at(path), (flags | os.O_CREAT) & ~os.O_NOFOLLOW & ~os.O_DIRECT, mode)
        return self.entry(path) + struct.pack("<QI4x", handle, 0)

    def on_read(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(handle, size, offset)

    def on_write(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<I4x", os.pwrite(handle, body[40 : 40 + size], offset))

    def on_statfs(self, node: int, body: bytes) -> bytes:
        found = os.statvfs(self.at("."))
        room = (found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
        return struct.pack("<QQQQQIII28x", *room, found.f_bsize, found.f_namemax, found.f_frsize)

    def on_release(self, node: int, body: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def on_flush(self, node: int, body: bytes) -> bytes:
        return b""

    def on_fsync(self, node: int, body: bytes) -> bytes:
        os.fsync(struct.unpack_from("<Q", body)[0])
        return b""

    def on_opendir(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QI4x", os.open(self.at(self.path(node)), os.O_RDONLY | os.O_DIRECTORY), 0)

    def on_readdir(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        listed = b""
        names = sorted(one.name for one in Path(self.at(self.path(node))).iterdir())
        for index, name in enumerate(names[offset:], start=offset + 1):
            raw = os.fsencode(name)
            one = struct.pack("<QQII", 1, index, len(raw), 0) + raw
            one += bytes(-len(one) % 8)
            if len(listed) + len(one) > size:
                break
            listed += one
        return listed

    def on_lock(self, node: int, body: bytes) -> bytes:
        raise OSError(self.error, "")


_CODES = dict.fromkeys((2, 36, 42), "forget") | dict.fromkeys((31, 32, 33), "lock") | dict.fromkeys((25, 30), "flush")
_CODES |= {1: "lookup", 3: "getattr", 4: "setattr", 5: "readlink", 6: "symlink", 8: "mknod", 9: "mkdir", 10: "unlink"}
_CODES |= {11: "rmdir", 12: "rename", 14: "open", 15: "read", 16: "write", 17: "statfs", 18: "release", 20: "fsync"}
_CODES |= {26: "init", 27: "opendir", 28: "readdir", 29: "release", 35: "create", 45: "rename2"}


def _serve(device: int, served: _Served) -> None:
    """Answer requests until the file system is unmounted."""
    while True:
        try:
            request = os.read(device, _MOST + 2**14)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            continue
        _, code, unique, node, *_ = _HEADER.unpack_from(request)
        try:
            answer, number = served.answer(code, node, request[_HEADER.size :]), 0
        except OSError as error:
            answer, number = b"", -(error.errno or errno.EIO)
        if answer is not None:
            os.write(device, struct.pack("<IiQ", 16 + len(answer), number, unique) + answer)


def main() -> int:
    """Mount, serve, run the program."""
    folder, error, program = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    which, _, name = error.rpartition(":")
    served = _Served(folder, getattr(errno, name))
    served.locks = {"flock": ~_POSIX, "fcntl": ~_FLOCK}.get(which, ~0)
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    said = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions".encode()
    steps = (
        (libc.unshare, 0x20000),
        (libc.mount, b"none", b"/", None, 0x44000, None),
        (libc.mount, b"lockless", os.fsencode(folder), b"fuse", 0, said),
    )
    for call, *arguments in steps:
        if call(*arguments) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    server = os.fork()
    if server == 0:
        libc.prctl(1, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _serve(device, served)
        os._exit(0)
    os.close(device)
    try:
        return subprocess.run(program, check=False).returncode
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


if __name__ == "__main__":
    sys.exit(main())
