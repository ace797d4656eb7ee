"""``vmlab top`` as its users call it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.on_a_terminal import on_a_terminal
from tests.telemetry.recorded import RecordedHost
from vmlab.cli.commands.top_command import fitting, json_object
from vmlab.cli.top_view import host_lines
from vmlab.model.sample import Sample, SampleNames
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder

HOST_KEYS = (
    "cpu_user_percent",
    "cpu_system_percent",
    "cpu_iowait_percent",
    "disk_await_ms",
    "disk_util_percent",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "memory_used_bytes",
    "memory_cached_bytes",
)


def vmlab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vmlab", *arguments], capture_output=True, text=True, timeout=240, check=False
    )


def test_json_lines_are_plain_numbers() -> None:
    done = vmlab("top", "--json", "--interval", "0.1", "--count", "6")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 6
    # On a busy host one tick may come so late that the kernel counts nothing up to the next, which keeps its time.
    usual = [line for line in lines if line["tick_length_seconds"] > 0.05]
    assert usual
    for line in usual:
        assert line["schema"] == "vmlab.top/1"
        assert not {key: line[key] for key in HOST_KEYS if not isinstance(line[key], int | float)}, line
    assert lines[1]["mono"] - lines[0]["mono"] == pytest.approx(lines[1]["tick_length_seconds"])


def test_the_speed_of_the_cpus_stands_below_their_use() -> None:
    names = ("cpu_speed_percent", "cpu_speed_percent[0]", "cpu_speed_percent[1]")
    lines = host_lines(Sample(0.0, 1.0, 1.0, 0.0, SampleNames.of(names), (82.0, 64.0, 100.0)))
    assert lines[1] == "Speed     82 % of the best since the start, by CPU 64 100"


def test_a_picture_is_as_large_as_the_terminal() -> None:
    lines = [f"{number} {'x' * 20}" for number in range(9)]
    assert fitting(lines, os.terminal_size((80, 10))) == lines
    small = fitting(lines, os.terminal_size((12, 6)))
    assert small == [*(line[:12] for line in lines[:4]), "5 more lines"]


def test_text_goes_where_there_is_no_terminal() -> None:
    done = vmlab("top", "--interval", "100 ms", "--count", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Memory    used ") == 2
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("interval", ["x", "0", "1 parsec", "-1", "nan"])
def test_an_interval_without_sense_is_wrong_usage(interval: str) -> None:
    done = vmlab("top", f"--interval={interval}", "--count", "1")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_each_line_is_flushed_and_an_interrupt_ends_it() -> None:
    command = [sys.executable, "-m", "vmlab", "top", "--json", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert json.loads(running.stdout.readline())["cpu_count"] >= 1
        running.send_signal(signal.SIGINT)
        assert running.wait(240) == 130


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    command = [sys.executable, "-m", "vmlab", "top", "--json", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(240) != 0
        assert "Traceback" not in running.stderr.read()


def test_a_terminal_gets_its_first_screen_back() -> None:
    command = [sys.executable, "-m", "vmlab", "top", "--interval", "0.1", "--count", "2"]
    code, told = on_a_terminal(command, stderr=subprocess.DEVNULL)
    shown = told.decode()
    assert code == 0
    assert shown.startswith("\x1b[?1049h")
    assert shown.endswith("\x1b[?1049l\r\n")
    assert "cached" in shown


def recorded(host: RecordedHost, tmp_path: Path) -> Sample:
    seen: list[Sample] = []
    host.proc("self/mountinfo", "")
    recorder = Recorder(0.02, seen.append, Watched(host.roots, [tmp_path], scope="process"))
    recorder.start()
    while not seen:
        time.sleep(0.01)
    recorder.stop()
    return seen[0]


def test_lines_fit_a_narrow_terminal_and_keep_cache_apart(host: RecordedHost, tmp_path: Path) -> None:
    lines = host_lines(recorded(host, tmp_path))
    assert max(map(len, lines)) <= 80
    assert "used 4.58 GiB | cached 5.72 GiB | buffers 488 MiB | free 3.81 GiB" in "\n".join(lines)
    assert len(lines) < 24


def test_what_could_not_be_had_is_null(host: RecordedHost, tmp_path: Path) -> None:
    line = json_object(recorded(host, tmp_path))
    assert line["disk_await_ms"] is None, "no disk is known under the folder"
    assert line["memory_cached_bytes"] == 6_000_000 * 1024
