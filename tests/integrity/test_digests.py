"""Digests and seals notice a single flipped bit, wherever it is."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from vmlab.integrity import digests
from vmlab.integrity.digests import CHUNK, MOST_PLAIN, FileDigests, describe, seal, unseal
from vmlab.integrity.disk_reading import verify
from vmlab.integrity.long_work import LongWork


def test_a_file_is_described_by_chunks_and_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.write_bytes(b"a" * CHUNK + bytes(CHUNK) + b"bc")
    said = describe(file)
    assert said.size == 2 * CHUNK + 2
    assert said.chunks[1] is None and None not in (said.chunks[0], said.chunks[2])
    assert FileDigests.from_json(json.loads(json.dumps(said.as_json()))) == said
    assert said.holds(2, b"bc") and not said.holds(2, b"bd") and not said.holds(2, b"bc\0")
    assert said.holds(1, bytes(CHUNK)) and not said.holds(1, bytes(CHUNK - 1) + b"\1")


def test_an_empty_file_has_digests_too(tmp_path: Path) -> None:
    (tmp_path / "none").touch()
    said = describe(tmp_path / "none")
    assert (said.size, said.chunks) == (0, ()) and FileDigests.from_json(said.as_json()) == said


@pytest.mark.parametrize(
    "change",
    [
        {"size": CHUNK + 1},
        {"size": "1"},
        {"size": -1, "chunks": []},
        {"size": True},
        {"chunk_bytes": True},
        {"sha256": "abc"},
        {"chunk_bytes": 0},
        {"chunk_bytes": 1000},
        {"chunk_bytes": 2**40},
        {"chunks": ["A" * 64]},
        {"chunks": None},
        {"chunks": []},
    ],
)
def test_what_are_no_digests_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(ValueError, match="digests of a file"):
        FileDigests.from_json({**describe(tmp_path / "file").as_json(), **change})


def test_every_flipped_bit_of_a_sealed_text_is_noticed() -> None:
    values = {"schema": "x/1", "size": 12, "seconds": 0.1, "words": ["a", "ä"], "none": None}
    text = seal(values).encode()
    assert unseal(text) == values
    for at in range(len(text)):
        for bit in range(8):
            flipped = bytearray(text)
            flipped[at] ^= 1 << bit
            with pytest.raises(ValueError):
                unseal(bytes(flipped))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"seal": ""}', b"\xff"])
def test_what_was_never_sealed_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        unseal(text)


def test_whatever_stands_around_the_values_is_noticed() -> None:
    text = seal({"a": 1}).encode()
    for other in (text + b"\n", b" " + text, text.replace(b"\n", b"\r\n"), text.replace(b": 1", b":  1")):
        with pytest.raises(ValueError):
            unseal(other)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [(0, b"a")],
        [(CHUNK - 1, b"ab")],
        [(3 * CHUNK + 5, b"abc"), (7 * CHUNK, b"x" * CHUNK)],
        [(CHUNK, b"\0" * CHUNK)],
        [(0, b"a" * 5000), (2 * CHUNK, b"")],
    ],
    ids=range(6),
)
@pytest.mark.parametrize("size", [0, 1, 10 * CHUNK, 10 * CHUNK + 77])
def test_a_file_with_holes_has_the_digests_of_what_programs_read(
    tmp_path: Path, parts: list[tuple[int, bytes]], size: int
) -> None:
    with (tmp_path / "file").open("wb") as file:
        for at, data in parts:
            file.seek(at)
            file.write(data)
        file.truncate(max(size, file.tell()))
    content = (tmp_path / "file").read_bytes()
    said = describe(tmp_path / "file")
    pieces = [content[at : at + CHUNK] for at in range(0, len(content), CHUNK)]
    assert (said.size, said.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert said.chunks == tuple(hashlib.sha256(one).hexdigest() if any(one) else None for one in pieces)


def test_describing_a_file_ends_as_soon_as_it_is_asked_to(tmp_path: Path) -> None:
    """The error comes out at the third piece of many."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_PLAIN)
    calls: list[None] = []

    def stop() -> None:
        calls.append(None)
        if len(calls) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        describe(tmp_path / "large", LongWork(stop))
    assert len(calls) == 3


def test_a_huge_sparse_file_is_described_by_what_is_stored_in_it(tmp_path: Path) -> None:
    """7 TiB of zeros would be read for an hour: holes are not, and the list of digests stays short."""
    size = 7 * 2**40
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(size)
        file.seek(size // 2)
        file.write(b"x")
    said = describe(tmp_path / "huge")
    assert (said.size, said.chunk_bytes) == (size, 32 * CHUNK)
    stored = [index for index, digest in enumerate(said.chunks) if digest is not None]
    assert stored == [size // 2 // said.chunk_bytes]
    assert FileDigests.from_json(json.loads(json.dumps(said.as_json()))) == said
    assert verify({tmp_path / "huge": said}).faults == {}


@pytest.mark.parametrize("sparse", [False, True])
def test_the_digest_of_a_file_beyond_the_limit_depends_on_its_content_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: bool
) -> None:
    """Below the limit it is what `sha256sum` gives; beyond it, that of the list of its chunks' digests."""
    monkeypatch.setattr(digests, "MOST_PLAIN", 3 * CHUNK)
    content = b"a" * CHUNK + bytes(2 * CHUNK) + b"bc"
    with (tmp_path / "disk").open("wb") as file:
        file.write(content)
        if sparse:
            file.seek(CHUNK)
            file.truncate(CHUNK)
            file.seek(3 * CHUNK)
            file.write(b"bc")
    parts = [hashlib.sha256(b"a" * CHUNK).hexdigest(), None, None, hashlib.sha256(b"bc").hexdigest()]
    expected = hashlib.sha256(json.dumps([len(content), CHUNK, parts]).encode()).hexdigest()
    assert describe(tmp_path / "disk").sha256 == expected
    os.truncate(tmp_path / "disk", 3 * CHUNK)
    assert describe(tmp_path / "disk").sha256 == hashlib.sha256(content[: 3 * CHUNK]).hexdigest()
