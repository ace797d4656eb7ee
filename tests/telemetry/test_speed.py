"""Relative speed by hand, and the real probe: each CPU answers, and it ends with its reader."""

from __future__ import annotations

import asyncio
import math
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import until
from vmlab.model.sample import Sample
from vmlab.telemetry import speed_trace
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.speed_trace import CpuSpeed, period_to_watch, speed_probe

compiled = pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler")


def slot(probes: int, durations: list[int], fifo: int = 1) -> bytes:
    return struct.pack("5Q24x", 2 * probes, probes, sum(10**12 // one for one in durations), min(durations), fifo)


async def test_speed_is_the_mean_of_best_over_duration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A probe that prints slots and waits: CPU 0 takes 100 ns and 200 ns, CPU 1 is not ours, CPU 2 50 ns."""
    (tmp_path / "slots").write_bytes(slot(2, [100, 200]) + bytes(64) + slot(1, [50]))
    (tmp_path / "probe").write_text(f"#!/bin/sh\ncat {tmp_path}/slots; exec cat >/dev/null\n")
    (tmp_path / "probe").chmod(0o755)
    told: list[str] = []
    one = CpuSpeed(told.append, lambda: tmp_path / "probe")
    assert one.read(0.0, 1.0) == []
    one.start()
    values: list[float] = []

    def read() -> bool:
        values[:] = one.read(1.0, 1.0)
        return bool(values)

    await until(read, "figures")
    figures = ("cpu_speed_percent", "cpu_speed_best_ms")
    assert one.names == tuple(f"{name}{cpu}" for name in figures for cpu in ("", "[0]", "[2]"))
    assert values == [87.5, 75.0, 100.0, 50e-6, 100e-6, 50e-6]
    speeds, bests = (one.read(2.0, 1.0)[part] for part in (slice(3), slice(3, 6)))
    assert all(map(math.isnan, speeds)) and bests == values[3:]
    one.close()
    assert told == []


def test_without_a_compiler_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    told: list[str] = []
    one = CpuSpeed(told.append, lambda: speed_probe(tmp_path))
    one.start()
    assert one.read(0.0, 1.0) == []
    one.close()
    assert told == ["no speed trace: no C compiler is installed, and it takes one once"]


@compiled
def test_a_source_that_does_not_compile_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int main(void) { return }\n")
    monkeypatch.setattr(speed_trace, "_SOURCE", broken)
    told: list[str] = []
    one = CpuSpeed(told.append, lambda: speed_probe(tmp_path / "cache"))
    one.start()
    one.close()
    (line,) = told
    assert re.fullmatch(r"no speed trace: \S*gcc failed: .*broken\.c:1:\d+: error: .*", line)
    assert [one.name for one in (tmp_path / "cache").rglob("*")] == ["scratch", ".gate"]


@pytest.mark.parametrize("compiler", ["", "#!/bin/sh\necho 'cannot write' >&2\nexit 3\n"])
async def test_a_recorder_without_a_probe_says_so_once_and_records_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiler: str
) -> None:
    if compiler:
        (tmp_path / "gcc").write_text(compiler)
        (tmp_path / "gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(speed_trace, "cache_folder", lambda: tmp_path / "cache")
    told: list[str] = []
    seen: list[Sample] = []
    recorder = Recorder(0.02, seen.append, Watched(scope="process", notify=told.append), speed=0.1)
    recorder.start()
    await until(lambda: len(seen) > 3, "samples")
    recorder.stop()
    assert all(sample.get("cpu_count") > 0 for sample in seen)
    assert "cpu_speed_percent" not in seen[-1].layout.position
    why = f"{tmp_path}/gcc failed: cannot write" if compiler else "no C compiler is installed, and it takes one once"
    assert [line for line in told if "speed" in line] == [f"no speed trace: {why}"]


@compiled
async def test_the_probe_measures_each_cpu_and_a_dead_one_is_an_error(tmp_path: Path) -> None:
    one = CpuSpeed(lambda line: None, lambda: speed_probe(tmp_path))
    one.start()
    seen: set[str] = set()

    def all_seen() -> bool:
        values = one.read(0.0, 1.0)
        assert all(math.isnan(value) or 0 < value <= 100 for value in values)
        seen.update(name for name, value in zip(one.names, values, strict=True) if value == value)
        cpus = ["", *(f"[{cpu}]" for cpu in os.sched_getaffinity(0))]
        return seen == {f"{name}{cpu}" for name in ("cpu_speed_percent", "cpu_speed_best_ms") for cpu in cpus}

    await until(all_seen, "a figure of each CPU")
    assert speed_probe(tmp_path) == next(tmp_path.glob("speed-probe-*"))
    assert one._process is not None
    one._process.kill()
    one._process.wait()
    with pytest.raises(OSError, match="the probe ended with code -9"):
        one.read(0.0, 1.0)
    one.close()


@compiled
async def test_the_probe_works_as_often_as_it_is_told(tmp_path: Path) -> None:
    """One that is told to do so seldom has probed a CPU once, at its start, while the other one did many times."""
    (cpu, *_) = os.sched_getaffinity(0)
    often, seldom = (CpuSpeed(lambda line: None, lambda: speed_probe(tmp_path), period) for period in (0.05, 600.0))
    for one in (often, seldom):
        one.start()
    await until(lambda: often._consistent()[cpu : cpu + 1] != [] and often._consistent()[cpu][1] > 4, "probes")
    assert seldom._consistent()[cpu][1] == 1
    for one in (often, seldom):
        one.close()


def test_two_probes_stand_in_each_sample_that_is_shown() -> None:
    assert list(map(period_to_watch, (0.02, 0.2, 0.5, 1.0, 60.0))) == [0.1, 0.1, 0.25, 0.5, 0.5]


@compiled
def test_the_probe_ends_when_its_reader_is_killed(tmp_path: Path) -> None:
    program = speed_probe(tmp_path)
    lines = (
        "import pathlib, sys",
        "from vmlab.telemetry.speed_trace import CpuSpeed",
        f"one = CpuSpeed(print, lambda: pathlib.Path({str(program)!r}))",
        "one.start()",
        "print(one._process.pid, flush=True)",
        "sys.stdin.read()",
    )
    with subprocess.Popen(
        [sys.executable, "-c", "; ".join(lines)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        held = os.pidfd_open(int(reader.stdout.readline()))
        reader.send_signal(signal.SIGKILL)
        reader.wait()
    try:
        asyncio.run(until(lambda: _ended(held), "the probe's end"))
    finally:
        os.close(held)


@pytest.mark.skipif(os.geteuid() != 0, reason="SCHED_FIFO needs root")
@pytest.mark.parametrize(("sleep", "ends_by_itself"), [("return 0;", False), ("return 22;", True)])
def test_a_probe_that_cannot_sleep_takes_no_cpu_from_others(sleep: str, ends_by_itself: bool, tmp_path: Path) -> None:
    shim = tmp_path / "shim.so"
    source = f"int clock_nanosleep(int c, int f, const void *t, void *r) {{ {sleep} }}"
    compile_it = ["gcc", "-shared", "-fPIC", "-o", str(shim), "-x", "c", "-"]
    subprocess.run(compile_it, input=source, text=True, check=True)
    # Where it goes wrong, the kernel ends it after three seconds of work.
    bound = ["prlimit", "--cpu=3", "--", "env", f"LD_PRELOAD={shim}", str(speed_probe(tmp_path))]
    slots = (tmp_path / "slots").open("w+b")
    with slots, subprocess.Popen(bound, stdin=subprocess.PIPE, stdout=slots, stderr=subprocess.DEVNULL) as probe:
        assert probe.stdin is not None
        if ends_by_itself:
            threads, deadline = Path(f"/proc/{probe.pid}/task"), time.monotonic() + 20
            while len(list(threads.iterdir())) > 1 or not any(os.pread(slots.fileno(), 1024, 0)):
                assert time.monotonic() < deadline, "a thread whose sleep fails goes on"
                time.sleep(0.01)
            probe.stdin.close()
        _, status, used = os.wait4(probe.pid, 0)
        probe.returncode = os.waitstatus_to_exitcode(status)
    assert probe.returncode == (0 if ends_by_itself else -signal.SIGKILL)
    assert used.ru_utime + used.ru_stime < 1.5


def _ended(held: int) -> bool:
    """Whether the process of a pidfd is dead; it may still be a zombie of an init that does not reap."""
    return bool(select.select([held], [], [], 0)[0])
