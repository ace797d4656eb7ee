"""A load with an end: half of a CPU, and large direct writes and reads of a file that `make` made. Run as a program."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from pathlib import Path

BLOCK = 1 << 20
BLOCKS = 32
THREADS = 4


def spin(until: float) -> None:
    """Busy for half of each 20 ms."""
    while time.monotonic() < until:
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            pass
        time.sleep(0.01)


def transfer(path: Path, until: float, number: int) -> None:
    """A direct write and a direct read of a MiB, twelve times a second, past the page cache."""
    descriptor = os.open(path, os.O_RDWR | os.O_DIRECT)
    memory = mmap.mmap(-1, BLOCK)
    memory.write(os.urandom(BLOCK))
    place = number
    try:
        while time.monotonic() < until:
            place = (place + THREADS) % BLOCKS
            os.pwrite(descriptor, memory, place * BLOCK)
            os.preadv(descriptor, [memory], place * BLOCK)
            time.sleep(0.08)
    finally:
        os.close(descriptor)


def make(path: Path) -> None:
    """Write the file."""
    path.write_bytes(b"\0" * (BLOCK * BLOCKS))


def main(path: Path, seconds: float) -> None:
    """Load the host until `seconds` have passed."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=transfer, args=(path, until, number)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    spin(until)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
