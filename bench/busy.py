"""Other work for a host: processes that keep CPUs and their caches busy while something else is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_WORK = """
import signal, sys
signal.alarm(int(sys.argv[1]))
memory = bytearray(16 << 20)
while True:
    memory = memory.translate(bytes(range(256)))
"""


@contextmanager
def busy(processes: int, seconds: float) -> Iterator[None]:
    """So many processes, each of which goes through 16 MiB again and again; they end with the block.

    Where the block is killed, they end by themselves after `seconds`.
    """
    started = [
        subprocess.Popen([sys.executable, "-c", _WORK, f"{seconds + 1:.0f}"], stderr=subprocess.DEVNULL)
        for _ in range(processes)
    ]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()
