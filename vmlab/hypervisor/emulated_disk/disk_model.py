"""A mechanical disk as arithmetic: heads that seek, platters that turn, bytes that pass. It knows no clock and no file.

What a request costs (a simplified form of C. Ruemmler and J. Wilkes, "An introduction to disk drive modeling", IEEE
Computer 27(3), 1994, where short seeks take a constant plus the square root of the distance):

- the seek: ``least + k * sqrt(distance / size)``, where `k` gives the profile's average seek. For two places that are
  chosen at random the mean of that root is 8/15, so ``k = (average - least) * 15 / 8``. The emulated disk is stretched
  over all tracks, however small it is.
- a random part of one turn;
- its bytes at the profile's rate, the same on every track;
- for the byte after the last one only the transfer. The drive reads on into its buffer, so such a read that comes a
  little late is not late.

There is no write cache: a write is done when it is on the platter. Of the oldest 32 requests the head takes the one
with the shortest seek, and one that was passed over 64 times before all others, so that none waits for ever.

Whether an emulated disk is as slow as its profile says is measured through the kernel, past all caches.
"""

from __future__ import annotations

import math
import mmap
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from vmlab.model.scenarios.disk_profiles import NCQ_DEPTH, DiskProfile
from vmlab.system.descriptors import closed_after
from vmlab.telemetry.recorder_clock import take_precedence

_ROOT_MEAN = 8 / 15
"""The mean of sqrt(|x - y|) for x and y uniform in 0 to 1: the integral of 2 (1 - u) sqrt(u)."""
_MOST_OVERTAKEN = 64
"""Our own choice: twice the drive's queue."""


@dataclass(eq=False, slots=True)
class _Request:
    tag: int
    pieces: int = 0


@dataclass(eq=False, slots=True)
class _Piece:
    """A part of a request that lies together on one disk."""

    request: _Request
    start: int
    length: int
    write: bool
    overtaken: int = 0

    @property
    def end(self) -> int:
        return self.start + self.length


class _Head:
    """The head of one disk of `size` bytes, and what waits for it."""

    def __init__(self, profile: DiskProfile, size: int, turns: random.Random) -> None:
        self._profile = profile
        self._size = size
        self._turns = turns
        self._position = 0
        self._passed_at: float | None = None
        """When the platter had passed the position; None before the first request."""
        self._waiting: list[_Piece] = []
        self._serving: _Piece | None = None
        self.ends = math.inf
        """When the piece that is served ends."""
        self.last = 0
        """The byte after the newest piece that was placed here."""

    @property
    def load(self) -> int:
        return len(self._waiting) + (self._serving is not None)

    def take(self, piece: _Piece, now: float) -> None:
        self._waiting.append(piece)
        if self._serving is None:
            self._serve_next(now)

    def end(self) -> _Piece:
        """End the piece that is served, and begin the next one at that moment."""
        piece, at = self._serving, self.ends
        assert piece is not None
        self._serving, self.ends = None, math.inf
        if self._waiting:
            self._serve_next(at)
        return piece

    def _serve_next(self, at: float) -> None:
        seen = self._waiting[:NCQ_DEPTH]
        piece = min(seen, key=lambda one: (-(one.overtaken // _MOST_OVERTAKEN), abs(one.start - self._position)))
        for other in seen:
            other.overtaken += 1
        self._waiting.remove(piece)
        self._passed_at = self._begin(piece, at) + piece.length / self._profile.rate
        self._serving, self.ends = piece, max(at, self._passed_at)
        self._position = piece.end

    def _begin(self, piece: _Piece, at: float) -> float:
        """When the first byte of `piece` passes; before `at` where the drive has read on."""
        distance = abs(piece.start - self._position)
        if distance:
            return at + self._seek(distance) + self._profile.turn * self._turns.random()
        if piece.write or self._passed_at is None:
            return at
        return max(self._passed_at, at - self._profile.read_ahead / self._profile.rate)

    def _seek(self, distance: int) -> float:
        least, average = self._profile.least_seek, self._profile.average_seek
        return least + (average - least) / _ROOT_MEAN * math.sqrt(distance / self._size)


class DiskModel:
    """One disk of `size` bytes. Times are seconds of any clock that does not go back; `seed` gives the turns."""

    def __init__(self, profile: DiskProfile, size: int, seed: int) -> None:
        self._profile = profile
        turns, disk = random.Random(seed), size // max(1, profile.pairs)
        self._heads = [_Head(profile, disk, turns) for _ in range(max(1, 2 * profile.pairs))]
        self._done: list[int] = []

    def submit(self, now: float, tag: int, offset: int, length: int, *, write: bool) -> None:
        """A request arrives: `length` bytes from `offset`. `tag` comes back from `finished`."""
        self._run_until(now)
        request = _Request(tag)
        placed = list(self._placed(request, offset, length, write=write))
        request.pieces = len(placed)
        for head, piece in placed:
            head.take(piece, now)

    def due(self) -> float | None:
        """When the next piece of a request ends; None while nothing is under way."""
        ends = min(head.ends for head in self._heads)
        return None if math.isinf(ends) else ends

    def finished(self, now: float) -> list[int]:
        """The tags of the requests that have ended by `now`, each once, in the order of their ends."""
        self._run_until(now)
        done, self._done = self._done, []
        return done

    def _placed(self, request: _Request, offset: int, length: int, *, write: bool) -> Iterator[tuple[_Head, _Piece]]:
        if not self._profile.pairs:
            yield self._heads[0], _Piece(request, offset, length, write)
            return
        chunk, end = self._profile.chunk, offset + length
        while offset < end:
            number, within = divmod(offset, chunk)
            row, pair = divmod(number, self._profile.pairs)
            start, here = row * chunk + within, min(end - offset, chunk - within)
            mirrors = self._heads[2 * pair : 2 * pair + 2]
            for head in mirrors if write else [_reader(mirrors, start)]:
                # What follows in this request is placed by where this piece ends.
                head.last = start + here
                yield head, _Piece(request, start, here, write)
            offset += here

    def _run_until(self, now: float) -> None:
        while (head := min(self._heads, key=lambda head: head.ends)).ends <= now:
            request = head.end().request
            request.pieces -= 1
            if not request.pieces:
                self._done.append(request.tag)


def _reader(mirrors: list[_Head], start: int) -> _Head:
    """The one that reads on, else the one with less to do, else the nearer one; like Linux md, which has more rules."""
    return min(mirrors, key=lambda head: (head.last != start, head.load, abs(head.last - start)))


def random_rate(
    profile: DiskProfile,
    size: int,
    depth: int,
    seed: int,
    requests: int = 4000,
    block: int = 4096,
    chosen: random.Random | None = None,
) -> float:
    """Reads of `block` bytes a second at random places, with `depth` of them under way at all times, by the model.

    `seed` gives the turns, and the places where `chosen` does not.
    """
    model, places = DiskModel(profile, size, seed), chosen or random.Random(seed)
    now = 0.0

    def ask(tag: int) -> None:
        model.submit(now, tag, places.randrange(size // block) * block, block, write=False)

    for tag in range(depth):
        ask(tag)
    done = 0
    while done < requests and (due := model.due()) is not None:
        now = due
        for tag in model.finished(now):
            done += 1
            ask(tag)
    return done / now


def stream_seconds(profile: DiskProfile, length: int) -> float:
    """Seconds in which `length` bytes pass in sequence: all pairs of an array deliver at the same time."""
    return length / (profile.rate * max(1, profile.pairs))


FASTER = 0.15
"""By how much a proven rate may exceed the profile's: a disk that is faster than it says would flatter."""
SLOWER = 0.25
"""By how much it may stay below: the host's way to the disk and back took 1 to 3 ms of a request, the more so where
a hypervisor below takes its CPUs away, and takes them from every side of a comparison."""
STREAM_BYTES = 64 * 2**20
_BLOCK = 2**20
_SMALL = 4096
_READS = {1: 100, 16: 300}
"""How many random reads are measured at each depth. Where they lie moves their mean by 10 %, their turns by 4 %."""
_MODELLED = 10
"""How often the model answers the same reads, each time with other turns."""


@dataclass(frozen=True, slots=True)
class ProofFigure:
    """One measured rate beside the one that the profile gives."""

    what: str
    unit: str
    measured: float
    expected: float

    @property
    def holds(self) -> bool:
        """Whether they agree, within `FASTER` and `SLOWER`."""
        return -SLOWER <= self.measured / self.expected - 1 <= FASTER

    def __str__(self) -> str:
        return f"{self.what}: {self.measured:.4g} {self.unit}, where the profile gives {self.expected:.4g}"


def prove(device: Path, profile: DiskProfile, size: int, seed: int) -> list[ProofFigure]:
    """Read `device`, of `size` bytes, with O_DIRECT; blocks for some seconds. Raises OSError.

    For a thread of its own, which takes precedence over the host's other work, so that the disk alone is measured.
    The same 64 MiB twice in sequence, so that a cache anywhere would show, then 4 KiB at random with 1 and with 16
    reads under way. What is expected is the model's answer to the same reads.
    """
    take_precedence()
    with closed_after(os.open(device, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)) as descriptor:
        return list(_figures(descriptor, profile, size, seed))


def _figures(descriptor: int, profile: DiskProfile, size: int, seed: int) -> Iterator[ProofFigure]:
    expected = STREAM_BYTES / stream_seconds(profile, STREAM_BYTES) / 1e6
    for time_of_reading in ("first", "second"):
        rate = STREAM_BYTES / _stream(descriptor, size // 2) / 1e6
        yield ProofFigure(f"64 MiB in sequence, the {time_of_reading} time", "MB/s", rate, expected)
    for depth, reads in _READS.items():
        rate = _random(descriptor, size, depth, reads, seed)
        wanted = mean(
            random_rate(profile, size, depth, turns, reads, _SMALL, random.Random(seed)) for turns in range(_MODELLED)
        )
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
