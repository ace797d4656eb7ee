"""Programs on a terminal of their own."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence


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


def _piece(master: int) -> bytes:
    """The next piece, as the kernel gives it; nothing when the last program has left the terminal."""
    try:
        return os.read(master, 65536)
    except OSError:
        return b""
