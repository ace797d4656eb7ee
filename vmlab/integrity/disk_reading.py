"""Reads files from the disk itself and compares them with their digests.

O_DIRECT reads from the medium; a buffered read may get older content from the page cache. Where a file system has no
O_DIRECT, the kernel is asked to drop the cached pages first, and the file is listed in `Findings.buffered`.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vmlab.integrity.digests import FileDigests
from vmlab.integrity.long_work import LongWork, current
from vmlab.model.errors import OF_THIS_PROCESS

_THREADS = 4
"""Reading and hashing overlap then: 1.5 GB/s where one thread had 0.6, see docs/evidence/performance.md."""

_POLL_SECONDS = 0.05
_NO_DIRECT = (errno.EINVAL, errno.EOPNOTSUPP)


@dataclass(frozen=True, slots=True)
class Findings:
    """`faults` has, by file, what is wrong with it; intact files are not in it.

    `buffered` are those that could not be read with O_DIRECT.
    """

    faults: dict[Path, str]
    buffered: tuple[Path, ...]


def verify(files: Mapping[Path, FileDigests], work: LongWork | None = None) -> Findings:
    """Read all `files` and compare; blocks. Raises what `work` raises; its steps are bytes.

    Raises OSError where this process can read no file at all (memory, open files, rights).

    A file that is missing, has another size, or cannot be read has a fault, like one that differs. A hole is skipped
    where zeros are expected, and read where data is expected.
    """
    readings = [_Reading(path, expected) for path, expected in files.items()]
    longest = max((one.chunk_bytes for one in files.values()), default=mmap.PAGESIZE)
    try:
        for reading in readings:
            reading.open()
        _read_all(_Shared(chunk for reading in readings for chunk in reading.wanted()), longest, work or current())
    finally:
        for reading in readings:
            reading.close()
    return Findings(
        {reading.path: reading.fault for reading in readings if reading.fault is not None},
        tuple(reading.path for reading in readings if reading.buffered),
    )


def _read_all(shared: _Shared, longest: int, work: LongWork) -> None:
    threads = [
        threading.Thread(target=_compare, args=(shared, longest), name="verifying", daemon=True)
        for _ in range(_THREADS)
    ]
    try:
        for thread in threads:
            thread.start()
        told = 0
        while alive := [thread for thread in threads if thread.is_alive()]:
            alive[0].join(_POLL_SECONDS)
            passed = shared.passed
            work.step(passed - told)
            told = passed
        work.step(shared.passed - told)
    except BaseException:
        # Also a signal handler's. The threads must stop reading before the descriptors are closed.
        shared.over = True
        for thread in threads:
            thread.join()
        raise
    if shared.failure is not None:
        raise shared.failure


@dataclass(slots=True)
class _Reading:
    path: Path
    expected: FileDigests
    descriptor: int = -1
    trouble: str | None = None
    differs_at: int | None = None
    buffered: bool = False
    stored: frozenset[int] = frozenset()

    @property
    def fault(self) -> str | None:
        """What is wrong with the file, if anything is."""
        if self.trouble is None and self.differs_at is not None:
            return self.expected.fault(self.path.name, self.differs_at)
        return self.trouble

    def open(self) -> None:
        try:
            self._open()
            size = os.fstat(self.descriptor).st_size
            self.stored = self._stored()
            if size != self.expected.size:
                self.trouble = f"{self.path.name} is {size} bytes long and not {self.expected.size}"
        except OSError as error:
            self._cannot(error)

    def _open(self) -> None:
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT)
            # Some file systems accept the flag and then refuse to read.
            with mmap.mmap(-1, mmap.PAGESIZE) as page:
                os.preadv(self.descriptor, [page], 0)
        except OSError as error:
            if error.errno not in _NO_DIRECT:
                raise
            self.close()
            self.buffered = True
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            os.fdatasync(self.descriptor)
            os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def wanted(self) -> Iterator[tuple[_Reading, int, int]]:
        """The chunks that are to be read: all but holes where zeros are expected; with the bytes up to its end."""
        before = 0
        for index, digest in enumerate(self.expected.chunks):
            if digest is not None or index in self.stored:
                end = index * self.expected.chunk_bytes + self.expected.length(index)
                yield self, index, end - before
                before = end

    def _stored(self) -> frozenset[int]:
        """The chunks that contain anything but a hole."""
        found: set[int] = set()
        at, every = 0, self.expected.chunk_bytes
        while at < self.expected.size:
            try:
                start = os.lseek(self.descriptor, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break
                raise
            at = os.lseek(self.descriptor, start, os.SEEK_HOLE)
            found.update(range(start // every, -(-at // every)))
        return frozenset(found)

    def check(self, index: int, buffer: memoryview) -> None:
        """Read and compare one chunk; `buffer` is aligned and as long as a chunk.

        After the first damaged chunk the rest is not read.
        """
        if self.trouble is not None or (self.differs_at is not None and self.differs_at < index):
            return
        offset = index * self.expected.chunk_bytes
        got = 0
        try:
            while got < self.expected.length(index):
                count = os.preadv(self.descriptor, [buffer[got:]], offset + got)
                if count == 0:
                    break
                got += count
        except OSError as error:
            self._cannot(error)
            return
        if not self.expected.holds(index, buffer[: min(got, self.expected.length(index))]):
            self.differs_at = index if self.differs_at is None else min(index, self.differs_at)

    def _cannot(self, error: OSError) -> None:
        """Note a fault of the file. Raises an error that is none of its own."""
        if error.errno in OF_THIS_PROCESS:
            raise error
        self.trouble = f"{self.path.name} cannot be read: {error.strerror or error}"


@dataclass(slots=True)
class _Shared:
    """The chunks to be read, taken by several threads; `passed` are the bytes of those that were taken."""

    chunks: Iterator[tuple[_Reading, int, int]]
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: bool = False
    failure: OSError | None = None
    passed: int = 0

    def next(self) -> tuple[_Reading, int] | None:
        with self.lock:
            if self.over or (chunk := next(self.chunks, None)) is None:
                return None
            reading, index, count = chunk
            self.passed += count
            return reading, index


def _compare(shared: _Shared, longest: int) -> None:
    try:
        # Anonymous memory begins at a page, as O_DIRECT requires.
        buffer = memoryview(mmap.mmap(-1, longest))
        while (chunk := shared.next()) is not None:
            reading, index = chunk
            reading.check(index, buffer[: reading.expected.chunk_bytes])
    except OSError as error:
        shared.failure, shared.over = error, True
