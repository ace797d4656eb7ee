"""Relative speed by hand, and the real probe: each CPU answers, and it ends with its input."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from vmlab.telemetry import speed
from vmlab.telemetry.speed import SpeedTrace

SOURCE = Path(speed.__file__).with_name("speed_probe.c")


def test_speed_is_the_mean_of_best_over_duration() -> None:
    trace = SpeedTrace()
    for line in ("fifo 1 0", "1 0 100", "2 0 200", "3 1 50", "cut of", "4 1 0"):
        trace.feed(line)
    assert trace.take() == {0: 0.75, 1: 1.0}
    assert trace.take() == {}
    trace.feed("5 0 400")
    assert trace.take() == {0: 0.25}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler")
def test_the_probe_measures_each_cpu_and_ends_with_its_input(tmp_path: Path) -> None:
    program = tmp_path / "speed_probe"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, SOURCE], check=True)
    trace = SpeedTrace()
    seen: set[int] = set()
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:
        assert probe.stdin is not None and probe.stdout is not None
        while seen != os.sched_getaffinity(0):
            trace.feed(probe.stdout.readline())
            speeds = trace.take()
            assert all(0 < value <= 1 for value in speeds.values())
            seen |= speeds.keys()
        probe.stdin.close()
        assert probe.wait(30) == 0
