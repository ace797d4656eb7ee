"""Measures at what rate every processor runs, all of them busy: a chain of additions, each of which takes one cycle.

Each addition needs the result of the one before, and on all processors of x86-64 ``add`` of two registers has a latency
of one cycle (Agner Fog, instruction tables). The best of many short spans counts: whatever took the processor away
meanwhile only makes a span longer. Prints ``{"hertz": [one for each processor]}``, an empty list where the machine is
none of x86-64.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import sys
import time

_ADDITIONS = 1000
_LOOPS = 2_000
_SPANS = 200
# 1: add rax, rcx (a thousand times); dec rdi; jnz 1; ret
_ADD = bytes.fromhex("4801c8")
_BODY = _ADD * _ADDITIONS + bytes.fromhex("48ffcf")
_CODE = _BODY + bytes.fromhex("0f85") + (-(len(_BODY) + 6)).to_bytes(4, "little", signed=True) + bytes.fromhex("c3")


def rate() -> float:
    """Cycles in a second of this thread's processor."""
    memory = mmap.mmap(-1, len(_CODE), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(_CODE)
    chain = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    best = float("inf")
    for _ in range(_SPANS):
        began = time.perf_counter()
        chain(_LOOPS)
        best = min(best, time.perf_counter() - began)
    return _ADDITIONS * _LOOPS / best


def main() -> None:
    hertz = []
    if platform.machine() == "x86_64":
        readers = []
        for processor in sorted(os.sched_getaffinity(0)):
            read, write = os.pipe()
            if os.fork() == 0:
                os.sched_setaffinity(0, {processor})
                os.write(write, repr(rate()).encode())
                os._exit(0)
            os.close(write)
            readers.append(read)
        hertz = [float(os.read(reader, 100) or "nan") for reader in readers]
    sys.stdout.write(json.dumps({"hertz": hertz}) + "\n")


main()
