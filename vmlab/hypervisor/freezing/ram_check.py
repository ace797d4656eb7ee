"""A saved state while QEMU loads it: kept in memory, so that the bytes that are compared are those that QEMU reads.

Both read the same pages of the page cache, which cannot be dropped and read anew in between. QEMU starts to load before
all is compared, but the guest does not run before that.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from vmlab.integrity import FileDigests
from vmlab.model.errors import OF_THIS_PROCESS, HypervisorError, RefusedError, SnapshotError
from vmlab.system.kernel import held_in_memory


class HeldState:
    """A `file` of RAM state, open and all of it in memory from `hold` to `release`. QEMU is to read from `descriptor`.

    All methods block. After `hold`, `release` must be called, also on an error.
    """

    def __init__(self, file: Path, expected: FileDigests) -> None:
        self._file = file
        self._expected = expected
        self._held = ExitStack()
        self.descriptor = -1

    def hold(self) -> None:
        """Open it and read it in.

        Raises SnapshotError where it cannot be read or is of another length, RefusedError without the memory for it.
        """
        try:
            self.descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
            self._held.callback(os.close, self.descriptor)
            size = os.fstat(self.descriptor).st_size
        except OSError as error:
            raise self._unreadable(error) from error
        if size != self._expected.size:
            raise self._damaged(f"{self._file.name} is {size} bytes long and not {self._expected.size}")
        self._hold(size)

    def _hold(self, size: int) -> None:
        try:
            self._held.enter_context(held_in_memory(self.descriptor, size))
        except OSError as error:
            # A medium that cannot be read causes the same error.
            self.compare()
            raise RefusedError(
                f"{self._file} cannot be held in memory while it loads: {error.strerror}",
                remedy="free some memory, or raise the limit of locked memory",
            ) from error

    def compare(self) -> None:
        """Read all of it once. Raises SnapshotError at the first chunk that is not what was saved."""
        buffer = memoryview(bytearray(self._expected.chunk_bytes))
        for index in range(len(self._expected.chunks)):
            try:
                chunk = buffer[: self._read(buffer, index * self._expected.chunk_bytes)]
            except OSError as error:
                raise self._unreadable(error) from error
            if not self._expected.holds(index, chunk):
                raise self._damaged(self._expected.fault(self._file.name, index))

    def _read(self, buffer: memoryview, offset: int) -> int:
        got = 0
        while got < len(buffer) and (count := os.preadv(self.descriptor, [buffer[got:]], offset + got)):
            got += count
        return got

    def release(self) -> None:
        """Release the pages, and close the file."""
        self._held.close()

    def _unreadable(self, error: OSError) -> HypervisorError:
        if error.errno in OF_THIS_PROCESS:
            return HypervisorError(f"{self._file} cannot be read: {error.strerror}")
        return self._damaged(f"{self._file.name} cannot be read: {error.strerror or error}")

    def _damaged(self, fault: str) -> SnapshotError:
        folder = self._file.parent.name
        return SnapshotError(f"snapshot {folder} is damaged: {fault}", snapshot=folder)
