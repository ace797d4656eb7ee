"""The yardstick: a fixed piece of work for processor and memory, whose result is known.

A program of its own, ``python -I -S yardstick.py``, which imports nothing but Python's own modules. It prints one
JSON object: ``compute_seconds`` and ``memory_seconds`` as a clock on the wall shows them, ``cpu_seconds`` of the
processor that both took, and ``result``.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from array import array
from operator import itemgetter

_STEPS = 1_100_000
_TEXT_BYTES = 1 << 20
_BUFFER_BYTES = 32 << 20
"""Two of these are more than the cache of a processor core."""
_COPIES = 16
_GATHERED = 300_000


def _drawn(count: int, below: int) -> list[int]:
    """Numbers that look random and are the same everywhere (Knuth's MMIX generator, its upper bits)."""
    numbers, state = [], 1
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        numbers.append((state >> 33) % below)
    return numbers


def _compute(text: bytes) -> int:
    """An interpreter's loop, and a compression with its many branches: what emulation and servers do."""
    state = 1
    for _ in range(_STEPS):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    # What is compressed is compared, not the compressed form: that differs from one zlib to the other.
    return zlib.crc32(zlib.decompress(zlib.compress(text, 6)), state)


def _move(source: bytearray, target: bytearray, gather: itemgetter[tuple[int, ...]]) -> int:
    """Whole buffers copied, which needs the memory's throughput; scattered reads, which wait for it."""
    half = len(source) // 2
    for _ in range(_COPIES):
        target[:half] = source[half:]
        target[half:] = source[:half]
    numbers = array("Q")
    numbers.frombytes(target)
    if sys.byteorder == "big":
        numbers.byteswap()
    total: int = sum(gather(numbers))
    return total & 0xFFFFFFFF


def main() -> None:
    """Do the work once and print what it took."""
    # What is prepared is not timed: the kernel has to find and clear these pages first.
    drawn = _drawn(40_000, 1 << 31)
    text = b";".join(b"%x:%d" % (one, one % 997) for one in drawn)[:_TEXT_BYTES]
    source = bytearray(text * (_BUFFER_BYTES // len(text) + 1))[:_BUFFER_BYTES]
    target = bytearray(source)
    gather = itemgetter(*_drawn(_GATHERED, _BUFFER_BYTES // 8))
    cpu, began = time.process_time(), time.perf_counter()
    computed = _compute(text)
    between = time.perf_counter()
    moved = _move(source, target, gather)
    ended = time.perf_counter()
    taken = {
        "compute_seconds": between - began,
        "memory_seconds": ended - between,
        "cpu_seconds": time.process_time() - cpu,
        "result": (computed << 32) | moved,
    }
    sys.stdout.write(json.dumps(taken))


if __name__ == "__main__":
    main()
