"""Programs on a terminal of their own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.priority import stay_nice

_DEADLINE_SECONDS = 240.0
_MARK = b"\0end\0"


def on_a_terminal(
    program: Sequence[str | bytes], *, stderr: int | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Run a program whose output, and also its errors unless they go to `stderr`, go to a terminal.

    Its exit status, and what the terminal was told. Raises TimeoutExpired where it ends four minutes late.
    """
    master, slave = pty.openpty()
    with subprocess.Popen(program, stdout=slave, stderr=slave if stderr is None else stderr, env=env) as running:
        os.close(slave)
        told = bytearray()
        while piece := _piece(master):
            told += piece
        os.close(master)
        return running.wait(240), bytes(told)


class Seated:
    """A program whose controlling terminal is one of its own, as a shell would start it; what it writes is kept."""

    def __init__(self, program: Sequence[str], env: Mapping[str, str], size: tuple[int, int]) -> None:
        self._keyboard, self._screen = pty.openpty()
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.before = self.settings()
        self.process = subprocess.Popen(
            program, stdin=self._screen, stdout=self._screen, stderr=self._screen, env=env, preexec_fn=self._sit_down
        )
        self._told = bytearray()
        self._ending, self._end = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @staticmethod
    def _sit_down() -> None:
        os.setsid()
        stay_nice()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _read(self) -> None:
        while self._ending not in select.select([self._keyboard, self._ending], [], [])[0]:
            self._told += _piece(self._keyboard)

    @property
    def told(self) -> bytes:
        """What the terminal was told so far."""
        return bytes(self._told)

    def settings(self) -> list[Any]:
        """Of the terminal: whether it echoes, what its keys do."""
        return termios.tcgetattr(self._screen)

    def type(self, keys: bytes) -> None:
        """All of them at once, as a paste or a fast typist does."""
        os.write(self._keyboard, keys)

    def until(self, holds: Callable[[bytes], object], what: str) -> None:
        """Wait until what the terminal was told is so. Raises AssertionError with the last of it."""
        end = time.monotonic() + _DEADLINE_SECONDS
        while not holds(self.told):
            assert time.monotonic() < end, f"never happened: {what}; {self.told[-2000:]!r}"
            time.sleep(0.01)

    def hang_up(self) -> int:
        """Take the terminal away; the program's exit code."""
        self._leave()
        return self.process.wait(_DEADLINE_SECONDS)

    def ended(self) -> int:
        """Its exit code, once it has ended and all that it wrote was read."""
        code = self.process.wait(_DEADLINE_SECONDS)
        # What was written comes through the terminal in order, so this mark is the last of it.
        os.write(self._screen, _MARK)
        self.until(lambda told: told.endswith(_MARK), "all that was written was read")
        del self._told[-len(_MARK) :]
        return code

    def _leave(self) -> None:
        """Close the terminal, which its reader would keep open."""
        if self._reader.is_alive():
            os.write(self._end, b"\0")
            self._reader.join()
            for each in (self._keyboard, self._screen, self._ending, self._end):
                os.close(each)


@contextmanager
def seated(
    program: Sequence[str], env: Mapping[str, str] | None = None, size: tuple[int, int] = (80, 24)
) -> Iterator[Seated]:
    """A program on a terminal of its own, which is killed at the end where it has not ended."""
    place = Seated(program, dict(os.environ) if env is None else env, size)
    try:
        yield place
    finally:
        place.process.kill()
        place.process.wait()
        place._leave()


def _piece(master: int) -> bytes:
    """The next piece, as the kernel gives it; nothing when the last program has left the terminal."""
    try:
        return os.read(master, 65536)
    except OSError:
        return b""
