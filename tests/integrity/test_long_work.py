"""Long loops go in pieces, pass over holes, say how far they are, and end when they are asked to."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from vmlab.integrity import long_work
from vmlab.integrity.digests import describe
from vmlab.integrity.disk_reading import verify
from vmlab.integrity.long_work import (
    PIECE,
    LongWork,
    as_current,
    beside,
    checked_by,
    copied,
    current,
    pieces,
    until,
    zeros,
)


class Heard(LongWork):
    """Work that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[str] = []

    def begun(self) -> None:
        self.stages.append(self.words)


def _sparse(file: Path) -> bytes:
    """A file of data, a hole, data and a hole; its content."""
    with file.open("wb") as opened:
        opened.write(os.urandom(PIECE + 5))
        opened.seek(4 * PIECE)
        opened.write(b"x" * 7)
        opened.truncate(6 * PIECE + 3)
    return file.read_bytes()


def test_pieces_are_the_content_and_holes_are_not_read(tmp_path: Path) -> None:
    content, work = _sparse(tmp_path / "a"), LongWork()
    with (tmp_path / "a").open("rb") as file:
        found = list(pieces(file, work))
    assert b"".join(found) == content and max(map(len, found)) == PIECE
    assert [one is zeros(PIECE) for one in found] == [False, False, True, True, False, True, False]
    assert work.done == len(content)


@pytest.mark.parametrize("size", [0, 1, PIECE, 6 * PIECE + 3])
def test_a_copy_has_the_content_and_the_holes(tmp_path: Path, size: int) -> None:
    content = _sparse(tmp_path / "a")
    os.truncate(tmp_path / "a", size)
    with (tmp_path / "a").open("rb") as file:
        copied(file, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == content[:size].ljust(size, b"\0")
    assert (tmp_path / "b").stat().st_blocks * 512 <= 4 * PIECE + 2**14


def test_steps_of_describing_and_comparing_are_the_bytes_of_the_file(tmp_path: Path) -> None:
    content = _sparse(tmp_path / "a")
    describing, comparing = LongWork(), LongWork()
    said = describe(tmp_path / "a", describing)
    assert verify({tmp_path / "a": said}, comparing).faults == {}
    # A hole at the end is passed over.
    assert describing.done == len(content) and 4 * PIECE < comparing.done <= len(content)


def test_loops_take_the_current_work_and_its_checks(tmp_path: Path) -> None:
    _sparse(tmp_path / "a")
    work = Heard()

    def stop() -> None:
        raise InterruptedError

    with as_current(work):
        current().begin("reading", 10)
        describe(tmp_path / "a")
        assert work.done > 0
        with checked_by(stop), pytest.raises(InterruptedError):
            describe(tmp_path / "a")
        describe(tmp_path / "a")
    assert work.stages == ["reading"] and current() is not work
    with checked_by(stop), pytest.raises(InterruptedError):
        describe(tmp_path / "a")


def test_a_comparison_ends_within_a_piece_when_it_is_asked_to(tmp_path: Path) -> None:
    _sparse(tmp_path / "a")
    said = describe(tmp_path / "a")
    with pytest.raises(InterruptedError):
        verify({tmp_path / "a": said}, until(lambda: True))


def test_what_cannot_be_divided_is_left_when_the_work_ends() -> None:
    over, given_up = threading.Event(), threading.Event()

    def endless() -> None:
        given_up.wait()
        over.set()

    def check() -> None:
        raise InterruptedError

    with checked_by(check), pytest.raises(InterruptedError):
        beside(endless, given_up.set)
    assert over.wait(60)


def test_what_cannot_be_divided_gives_its_result_or_its_error() -> None:
    assert beside(lambda: 5) == 5

    def late() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        beside(late)


def test_what_ends_just_after_it_was_waited_for_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    class JustLate(Future[int]):
        def result(self, timeout: float | None = None) -> int:
            found = super().result()
            if timeout is not None:
                raise TimeoutError
            return found

    monkeypatch.setattr(long_work, "Future", JustLate)
    assert beside(lambda: 5) == 5


def test_an_exception_of_a_signals_handler_ends_what_cannot_be_divided() -> None:
    class CameError(Exception):
        pass

    def came(*_: object) -> None:
        raise CameError

    before = signal.signal(signal.SIGUSR1, came)
    over = threading.Event()

    def endless() -> None:
        signal.raise_signal(signal.SIGUSR1)
        over.wait()

    try:
        with pytest.raises(CameError):
            beside(endless, over.set)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert over.is_set()
