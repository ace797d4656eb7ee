"""The emulated disk's process with a cache of its own: it is emptied at a flush alone, and lost when it is killed."""

from __future__ import annotations

import pyfuse3

from vmlab.hypervisor.emulated_disk import disk_server


class LosingFile(disk_server.OneFile):
    """As `OneFile`, but what was written since the last flush is in this process alone."""

    def __init__(self, kept: int, size: int, disk: disk_server.LimitedDisk) -> None:
        super().__init__(kept, size, disk)
        self._cached: list[tuple[int, bytes]] = []

    async def read(self, fh: pyfuse3.FileHandleT, off: int, size: int) -> bytes:
        """The newest bytes, from the cache where it has them."""
        found = bytearray(await super().read(fh, off, size))
        for start, held in self._cached:
            first, end = max(start, off), min(start + len(held), off + len(found))
            if first < end:
                found[first - off : end - off] = held[first - start : end - start]
        return bytes(found)

    async def write(self, fh: pyfuse3.FileHandleT, off: int, buf: bytes) -> int:
        """Into the cache."""
        self._cached.append((off, bytes(buf)))
        return len(buf)

    async def fsync(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:
        """Keep what is in the cache."""
        cached, self._cached = self._cached, []
        for off, held in cached:
            await super().write(fh, off, held)


if __name__ == "__main__":
    disk_server.OneFile = LosingFile  # type: ignore[misc]
    disk_server.main()
