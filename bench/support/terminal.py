"""A program on a terminal of its own that a bench reads, types on, and asks what stands on its screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=]*[a-zA-Z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^][^\x1b]*\x1b\\|.)")


class Terminal:
    """The near end of a pseudo-terminal; `pid` is the program's."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._descriptor, keys)

    def wait_for(self, text: str, deadline: float) -> float:
        """The moment (`time.perf_counter`) at which `text` had been written; what was written before does not count.

        Raises TimeoutError after `deadline` seconds, with the end of what was written.
        """
        end, seen = time.perf_counter() + deadline, b""
        while time.perf_counter() < end:
            if select.select([self._descriptor], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    seen += os.read(self._descriptor, 65536)
                if text.encode() in _ESCAPES.sub(b"", seen):
                    return time.perf_counter()
        raise TimeoutError(f"no {text!r} within {deadline} s; the end: {_ESCAPES.sub(b'', seen)[-300:]!r}")

    def drain(self, seconds: float) -> None:
        """Read and forget what is written during `seconds`."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._descriptor], [], [], left)[0]:
                with contextlib.suppress(OSError):
                    os.read(self._descriptor, 65536)

    def drain_to_end(self, deadline: float) -> None:
        """Read and forget what is written until the program ends. Raises TimeoutError after `deadline` seconds."""
        end = time.perf_counter() + deadline
        while time.perf_counter() < end:
            if select.select([self._descriptor], [], [], 0.05)[0]:
                try:
                    os.read(self._descriptor, 65536)
                except OSError:  # The program has closed the terminal.
                    return
        raise TimeoutError(f"not at its end within {deadline} s")


@contextmanager
def on_terminal(command: list[str], size: tuple[int, int], env: Mapping[str, str]) -> Iterator[Terminal]:
    """`command` on a terminal of `size` (columns, rows); it is killed at the end."""
    pid, descriptor = pty.fork()
    if pid == 0:  # pragma: no cover - the other process
        os.execvpe(command[0], command, {**os.environ, **env})
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    try:
        yield Terminal(pid, descriptor)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(descriptor)
