"""The digests of one file: of the whole, for people, and of every chunk, so that it can be checked in pieces;
and manifests in which every change is noticed: JSON in exactly one form, with its own SHA-256 as the last value.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.integrity.long_work import LongWork, pieces, zeros

CHUNK = 2**20
"""Bytes; digests that were written with other chunk sizes are read as well."""
MOST_PLAIN = 64 * 2**30
"""Bytes of the largest file whose digest is that of its bytes: a minute of computing where all of it is a hole."""

_LARGEST_CHUNK = 64 * CHUNK
_MOST_CHUNKS = 2**18
_BLOCK = 4096
_HEX = 64


@dataclass(frozen=True, slots=True)
class FileDigests:
    """What a file held when it was described.

    `size` is in bytes, `sha256` of all of it, as `sha256sum` gives; of a file larger than `MOST_PLAIN` it is that of
    its size and its chunks' digests, as the zeros of a huge sparse file would take hours. `chunks` has the SHA-256 of
    every `chunk_bytes`, the last one of the rest. It is None for a chunk of zeros, which need not be stored.
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
        # True is an int to Python.
        if type(size) is not int or type(every) is not int or not isinstance(chunks, list):
            raise ValueError("digests of a file are not numbers and a list")
        if size < 0 or not 0 < every <= _LARGEST_CHUNK or every % _BLOCK or len(chunks) != -(-size // every):
            raise ValueError("digests of a file do not fit its size")
        if not all(_is_digest(one) for one in (whole, *(chunk for chunk in chunks if chunk is not None))):
            raise ValueError("digests of a file are not SHA-256")
        return cls(size, whole, every, tuple(chunks))


def describe(path: Path, work: LongWork | None = None) -> FileDigests:
    """The digests of a file as programs see it now. Raises OSError, and what `work` raises."""
    chunks: list[str | None] = []
    with path.open("rb") as file, ThreadPoolExecutor(1) as other:
        size, every = 0, chunk_bytes(os.fstat(file.fileno()).st_size)
        whole = hashlib.sha256()
        plain = os.fstat(file.fileno()).st_size <= MOST_PLAIN
        before: Future[Any] = other.submit(int)
        for data in pieces(file, work, every):
            before.result()
            # The digest of the whole file takes as long as those of its chunks.
            before = other.submit(whole.update, data) if plain else before
            is_zero = data is zeros(every) or _is_zero(data)
            chunks.append(None if is_zero else hashlib.sha256(data).hexdigest())
            size += len(data)
        before.result()
        if not plain:
            whole.update(json.dumps([size, every, chunks]).encode())
        return FileDigests(size, whole.hexdigest(), every, tuple(chunks))


def chunk_bytes(size: int) -> int:
    """Of a file of `size` bytes: 1 MiB, and more of a file of over 256 GiB, whose list of digests would be too long."""
    every = CHUNK
    while every < _LARGEST_CHUNK and size > every * _MOST_CHUNKS:
        every *= 2
    return every


def _is_zero(data: bytes | bytearray | memoryview) -> bool:
    return data == bytes(len(data))


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == _HEX and set(value) <= set("0123456789abcdef")


_SEAL = "seal"


def seal(values: Mapping[str, Any]) -> str:
    """`values` as text that `unseal` takes."""
    digest = hashlib.sha256(_text(values).encode()).hexdigest()
    return _text({**values, _SEAL: digest})


def unseal(text: bytes) -> dict[str, Any]:
    """The values in `text`. Raises ValueError unless it is exactly the text that `seal` made of them."""
    values = json.loads(text)
    if not isinstance(values, dict) or values.pop(_SEAL, None) is None or seal(values).encode() != text:
        raise ValueError("it is not what was written")
    return values


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1) + "\n"
