"""Watches a machine's serial line for as long as it prints something new."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_KEPT = 64 * 1024
_LAST_WORDS = 200


@dataclass(frozen=True, slots=True)
class Watched:
    """How it ended: the words were ``found``, the program ``ended`` without them, was ``silent``, or took too long.

    `status` is the exit status of a program that ended by itself (negative for a signal), `last_words` the last line
    of its standard error.
    """

    end: Literal["found", "ended", "silent", "late"]
    status: int = 0
    last_words: str = ""


def watch_serial(argv: Sequence[str], words: bytes, patience: float, limit: float) -> Watched:
    """Run `argv`, whose standard output is the serial line, until it prints `words`; it has ended on return.

    It is killed after `patience` seconds without a new byte, and after `limit` seconds in all. Raises OSError when it
    cannot be started.
    """
    program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with program:
        try:
            return _listen(program, words, patience, limit)
        finally:
            program.kill()


def _listen(program: subprocess.Popen[bytes], words: bytes, patience: float, limit: float) -> Watched:
    assert program.stdout is not None
    assert program.stderr is not None
    heard = {program.stdout.fileno(): b"", program.stderr.fileno(): b""}
    end = time.monotonic() + limit
    with selectors.DefaultSelector() as ears:
        for number in heard:
            ears.register(number, selectors.EVENT_READ)
        while ears.get_map():
            left = end - time.monotonic()
            if not (ready := ears.select(max(0.0, min(patience, left)))):
                return Watched("silent" if patience < left else "late")
            for key, _ in ready:
                if not (chunk := os.read(key.fd, _KEPT)):
                    ears.unregister(key.fd)
                heard[key.fd] = (heard[key.fd] + chunk)[-_KEPT:]
            if words in heard[program.stdout.fileno()]:
                return Watched("found")
            if time.monotonic() > end:
                return Watched("late")
    lines = heard[program.stderr.fileno()].decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return Watched("ended", _status(program), last[-_LAST_WORDS:])


def _status(program: subprocess.Popen[bytes]) -> int:
    """The exit status of a program that closed its output, which it does by ending."""
    try:
        return program.wait(1.0)
    except subprocess.TimeoutExpired:
        return 0
