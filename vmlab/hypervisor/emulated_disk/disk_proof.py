"""Whether an emulated disk is as slow as its profile says: measured through the kernel, past all caches."""

from __future__ import annotations

import mmap
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vmlab.hypervisor.emulated_disk.disk_model import random_rate, stream_seconds
from vmlab.model.scenarios.disk_profiles import DiskProfile
from vmlab.telemetry.recorder_clock import take_precedence

TOLERANCE = 0.15
STREAM_BYTES = 64 * 2**20
_BLOCK = 2**20
_SMALL = 4096
_READS = {1: 100, 16: 300}
"""How many random reads are measured at each depth: the mean of that many has a noise of 4 % or less."""
_MODELLED = 2000


@dataclass(frozen=True, slots=True)
class ProofFigure:
    """One measured rate beside the one that the profile gives."""

    what: str
    unit: str
    measured: float
    expected: float

    @property
    def holds(self) -> bool:
        """Whether they agree within `TOLERANCE`."""
        return abs(self.measured / self.expected - 1) <= TOLERANCE

    def __str__(self) -> str:
        return f"{self.what}: {self.measured:.4g} {self.unit}, where the profile gives {self.expected:.4g}"


def prove(device: Path, profile: DiskProfile, size: int, seed: int) -> list[ProofFigure]:
    """Read `device`, of `size` bytes, with O_DIRECT; blocks for some seconds. Raises OSError.

    For a thread of its own, which takes precedence over the host's other work, so that the disk alone is measured.
    The same 64 MiB twice in sequence, so that a cache anywhere would show, then 4 KiB at random with 1 and with 16
    reads under way. What is expected is the model's answer to the same questions.
    """
    take_precedence()
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        return list(_figures(descriptor, profile, size, seed))
    finally:
        os.close(descriptor)


def _figures(descriptor: int, profile: DiskProfile, size: int, seed: int) -> Iterator[ProofFigure]:
    expected = STREAM_BYTES / stream_seconds(profile, STREAM_BYTES) / 1e6
    for time_of_reading in ("first", "second"):
        rate = STREAM_BYTES / _stream(descriptor, size // 2) / 1e6
        yield ProofFigure(f"64 MiB in sequence, the {time_of_reading} time", "MB/s", rate, expected)
    for depth, reads in _READS.items():
        rate = _random(descriptor, size, depth, reads, seed)
        wanted = random_rate(profile, size, depth, seed, _MODELLED)
        yield ProofFigure(f"4 KiB at random, {depth} at a time", "reads/s", rate, wanted)


def _stream(descriptor: int, start: int) -> float:
    buffer = mmap.mmap(-1, _BLOCK)
    began = time.monotonic()
    for offset in range(start, start + STREAM_BYTES, _BLOCK):
        os.preadv(descriptor, [buffer], offset)
    return time.monotonic() - began


def _random(descriptor: int, size: int, depth: int, reads: int, seed: int) -> float:
    places = random.Random(seed)
    lock, over = threading.Lock(), threading.Event()
    ends: list[float] = []
    errors: list[OSError] = []

    def read() -> None:
        take_precedence()
        buffer = mmap.mmap(-1, _SMALL)
        while not over.is_set():
            with lock:
                place = places.randrange(size // _SMALL) * _SMALL
            try:
                os.preadv(descriptor, [buffer], place)
            except OSError as error:
                errors.append(error)
                over.set()
            with lock:
                ends.append(time.monotonic())
                if len(ends) >= reads:
                    over.set()

    began = time.monotonic()
    threads = [threading.Thread(target=read, name="proof of the disk", daemon=True) for _ in range(depth)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return reads / (sorted(ends)[reads - 1] - began)
