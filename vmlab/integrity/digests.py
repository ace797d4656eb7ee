"""The digests of one file: of the whole, for people, and of every chunk, so that it can be checked in pieces."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

CHUNK = 2**20
"""Bytes; digests that were written with other chunk sizes are read as well."""

_LARGEST_CHUNK = 64 * CHUNK
_BLOCK = 4096
_HEX = 64


@dataclass(frozen=True, slots=True)
class FileDigests:
    """What a file held when it was described.

    `size` is in bytes, `sha256` of all of it. `chunks` has the SHA-256 of every `chunk_bytes`, the last one of the
    rest. It is None for a chunk of zeros, which need not be stored in a sparse file.
    """

    size: int
    sha256: str
    chunk_bytes: int
    chunks: tuple[str | None, ...]

    def holds(self, index: int, data: bytes | bytearray | memoryview) -> bool:
        """Whether `data` is the chunk `index`, to the last byte."""
        if len(data) != self.length(index):
            return False
        digest = self.chunks[index]
        return _is_zero(data) if digest is None else hashlib.sha256(data).hexdigest() == digest

    def length(self, index: int) -> int:
        """Bytes of the chunk `index`."""
        return min(self.chunk_bytes, self.size - index * self.chunk_bytes)

    def fault(self, name: str, index: int) -> str:
        """The message for chunk `index` of the file `name` when it has changed."""
        return f"{name} is not what it was in the {self.length(index)} bytes from byte {index * self.chunk_bytes} on"

    def as_json(self) -> dict[str, Any]:
        """JSON values that `from_json` takes."""
        return {
            "size": self.size,
            "sha256": self.sha256,
            "chunk_bytes": self.chunk_bytes,
            "chunks": list(self.chunks),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> FileDigests:
        """Raises ValueError for anything that `as_json` does not write."""
        try:
            size, whole, every, chunks = (fields[name] for name in ("size", "sha256", "chunk_bytes", "chunks"))
        except (KeyError, TypeError) as error:
            raise ValueError("digests of a file are missing") from error
        if not isinstance(size, int) or not isinstance(every, int) or not isinstance(chunks, list):
            raise ValueError("digests of a file are not numbers and a list")
        if not 0 < every <= _LARGEST_CHUNK or every % _BLOCK or len(chunks) != -(-size // every):
            raise ValueError("digests of a file do not fit its size")
        if not all(_is_digest(one) for one in (whole, *(chunk for chunk in chunks if chunk is not None))):
            raise ValueError("digests of a file are not SHA-256")
        return cls(size, whole, every, tuple(chunks))


def describe(path: Path, each: Callable[[], object] = lambda: None) -> FileDigests:
    """The digests of a file as programs see it now. Raises OSError.

    `each` is called before each chunk, and an error that it raises comes out within a chunk's time, however large the
    file is. Holes are not read.
    """
    chunks: list[str | None] = []
    size, zeros = 0, bytes(CHUNK)
    with path.open("rb") as file, ThreadPoolExecutor(1) as other:
        whole = hashlib.sha256()
        before: Future[Any] = other.submit(int)
        for data in _chunks(file, zeros):
            each()
            before.result()
            # The digest of the whole file takes as long as those of its chunks.
            before = other.submit(whole.update, data)
            chunks.append(None if data is zeros or _is_zero(data) else hashlib.sha256(data).hexdigest())
            size += len(data)
        before.result()
        return FileDigests(size, whole.hexdigest(), CHUNK, tuple(chunks))


def _chunks(file: BinaryIO, zeros: bytes) -> Iterator[bytes]:
    """The chunks of an open file, `zeros` themselves for one that is a hole."""
    at, size, data_from = 0, os.fstat(file.fileno()).st_size, 0
    while True:
        if data_from <= at:
            data_from = _next_data(file.fileno(), at, size)
        if at + CHUNK <= min(data_from, size):
            data = zeros
        else:
            file.seek(at)
            data = file.read(CHUNK)
        if not data:
            return
        yield data
        at += len(data)


def _next_data(file: int, at: int, size: int) -> int:
    """Where the next part of a file begins that is no hole; its end where none does."""
    try:
        return os.lseek(file, at, os.SEEK_DATA)
    except OSError as error:
        # A file system that knows no holes, or nothing but a hole up to the end.
        return size if error.errno == errno.ENXIO else at


def _is_zero(data: bytes | bytearray | memoryview) -> bool:
    return data == bytes(len(data))


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == _HEX and set(value) <= set("0123456789abcdef")
