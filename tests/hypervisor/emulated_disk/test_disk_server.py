"""What the emulated disk's process does with its requests, without FUSE, and what the proof asks of the disk."""

import asyncio
import math
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from vmlab.hypervisor.emulated_disk.disk_model import STREAM_BYTES, ProofFigure, prove
from vmlab.hypervisor.emulated_disk.disk_process import DiskProcess
from vmlab.hypervisor.libvirt.calls import call
from vmlab.model.errors import HypervisorError
from vmlab.model.scenarios.disk_profiles import HDD_7200, RAID10_4, DiskProfile

SIZE = 2**34
FAR = SIZE // 2

pytest.importorskip("pyfuse3")
from vmlab.hypervisor.emulated_disk.disk_server import LimitedDisk  # noqa: E402 - only where pyfuse3 is there


async def test_nothing_waits_while_the_limits_are_lifted() -> None:
    disk = LimitedDisk(HDD_7200, SIZE, seed=1)
    waiting = disk.wait(FAR, 4096, write=False)
    with pytest.raises(StopIteration):
        waiting.send(None)


async def _an_hour(disk: LimitedDisk) -> asyncio.Future[None]:
    """A stream of an hour that is under way, so that it cannot have ended by itself."""
    disk.set()
    waiting = asyncio.ensure_future(disk.wait(2**41, int(140e6 * 3600), write=False))
    await asyncio.sleep(0)
    assert not waiting.done()
    return waiting


async def _rounds() -> None:
    """Let the loop call what is due, and what that wakes."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_request_has_ended_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = await _an_hour(LimitedDisk(HDD_7200, 2**42, seed=1))
    loop = asyncio.get_running_loop()
    began = loop.time()
    monkeypatch.setattr(loop, "time", lambda: began + 3590)
    await _rounds()
    assert not waiting.done()
    monkeypatch.setattr(loop, "time", lambda: began + 3601)
    await _rounds()
    assert waiting.done()


async def test_lifting_the_limits_lets_go_what_waits() -> None:
    disk = LimitedDisk(HDD_7200, 2**42, seed=1)
    waiting = await _an_hour(disk)
    disk.lift()
    await asyncio.wait_for(waiting, 30)


async def test_each_setting_begins_with_the_same_turns() -> None:
    disk = LimitedDisk(HDD_7200, SIZE, seed=1)
    ends = []
    for _ in range(2):
        disk.set()
        model = disk._model
        assert model is not None
        model.submit(0.0, -1, FAR, 4096, write=False)
        ends.append(model.due())
        disk.lift()
    assert ends[0] == ends[1] is not None


@pytest.mark.parametrize(("measured", "holds"), [(75.1, True), (114.9, True), (74.9, False), (115.1, False)], ids=str)
def test_a_figure_may_be_15_percent_above_and_25_below(measured: float, holds: bool) -> None:
    assert ProofFigure("a read", "reads/s", measured, 100.0).holds is holds


class Clocked:
    """A disk in the place of os.preadv and of the clock: it serves one at a time and takes as long as it says.

    Whoever has read and asks for the time is told when that reading ended, however late its thread gets to ask.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now = 0.0
        self.asked: list[tuple[int, int]] = []
        self._seconds = seconds
        self._arm = threading.Lock()
        self._ended = threading.local()
        monkeypatch.setattr("os.preadv", self.read)
        monkeypatch.setattr("time.monotonic", self.time)

    def time(self) -> float:
        ended: float = self._ended.__dict__.pop("at", self.now)
        return ended

    def read(self, _descriptor: int, buffers: Sequence[mmap.mmap], offset: int) -> int:
        length = sum(len(buffer) for buffer in buffers)
        with self._arm:
            self.asked.append((offset, length))
            self.now += length / 140e6 if length > 4096 else self._seconds
            self._ended.at = self.now
        return length


async def _proved(disk: Path, profile: DiskProfile) -> list[ProofFigure]:
    """What the proof finds, in a thread of its own: it takes precedence, and the tests shall not keep it."""
    disk.touch()
    return await call("proving a disk", 60, prove, disk, profile, SIZE, 1)


async def test_the_proof_reads_the_same_64_mib_twice_and_then_small_blocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clocked = Clocked(monkeypatch, 1 / 80.9)
    first, second, alone, deep = await _proved(tmp_path / "disk", HDD_7200)
    streamed = [one for one in clocked.asked if one[1] > 4096]
    assert streamed[: len(streamed) // 2] == streamed[len(streamed) // 2 :]
    assert sum(length for _, length in streamed) == 2 * STREAM_BYTES
    assert first.measured == pytest.approx(140)
    assert (first.holds, second.holds, alone.holds) == (True, True, True)
    # By hand, for just these places: the heads' ways between them, and half a turn each.
    places = [0, *(offset for offset, length in clocked.asked[len(streamed) :][:100])]
    ways = [0.001 + 0.0072 * 15 / 8 * math.sqrt(abs(one - other) / SIZE) for one, other in pairwise(places)]
    assert alone.expected == pytest.approx(1 / (sum(ways) / 100 + 0.00417), rel=0.02)
    # One at a time, whoever asks: a disk that does not order what waits is not this one.
    assert deep.measured == pytest.approx(80.9) and not deep.holds


async def test_a_disk_that_remembers_what_was_read_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clocked = Clocked(monkeypatch, 1 / 80.9)
    seen: set[int] = set()

    def cached(_descriptor: int, buffers: Sequence[mmap.mmap], offset: int) -> int:
        if offset in seen:
            clocked.now += 1e-5
            return sum(len(buffer) for buffer in buffers)
        seen.add(offset)
        return clocked.read(_descriptor, buffers, offset)

    monkeypatch.setattr("os.preadv", cached)
    first, second, *_ = await _proved(tmp_path / "disk", RAID10_4)
    assert second.measured > 10 * first.measured
    assert not second.holds


async def test_a_process_that_does_not_start_says_why(tmp_path: Path) -> None:
    kept = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(HypervisorError, match=r"died \(exit status 2\): .*unrecognized arguments"):
            await DiskProcess.start(["--what"], kept, module="json.tool")
    finally:
        os.close(kept)


def test_a_file_that_cannot_be_written_ends_the_process_with_the_cause() -> None:
    failing = "with _or_end(): raise OSError(28, 'No space left on device')"
    program = f"from vmlab.hypervisor.emulated_disk.disk_server import _or_end\n{failing}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    words = "its file cannot be read or written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, words)
