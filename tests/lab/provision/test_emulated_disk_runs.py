"""Runs on a real emulated disk, without guests: real launcher, init and runner, and nothing left after any end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.lab.faked import CELL_SECONDS, Home, until
from tests.lab.programs.faked_vmlab import IMAGE
from tests.processes import processes
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.journal import Journal
from vmlab.telemetry.setting_files import why_no_emulated_disk

pytestmark = pytest.mark.skipif(bool(why_no_emulated_disk()), reason=why_no_emulated_disk() or "there")
SCENARIO = """\
name: slow
workloads: {primes: {kind: cpu, on: host, threads: 1}}
host: {disk: hdd-7200}
"""
CONTENT = b"a root file system" * 1000


@pytest.fixture
def image(tmp_path: Path) -> Path:
    (tmp_path / "slow.yaml").write_text(SCENARIO)
    file = tmp_path / "disk.raw"
    file.write_bytes(CONTENT)
    return file


def begun(home: Home, image: Path, seconds: str) -> None:
    """Start a run that is in its cell when this returns."""
    said = {IMAGE: str(image), CELL_SECONDS: seconds}
    home.spawn("run", str(image.with_name("slow.yaml")), "--size", "full", **said)
    until(lambda: home.in_a_cell() or home.started[0].poll() is not None, "a cell", 120)


def left(home: Home) -> tuple[list[str], list[str], list[object], list[int]]:
    """Loop devices, files in `disks`, open entries of the journal, and processes of the newest run."""
    (record,) = home.records()
    disks = record / "disks"
    return (
        loop_devices.marked(loop_devices.mark_of(record.name)),
        sorted(path.name for path in disks.iterdir()) if disks.exists() else [],
        list(Journal(record / "journal.jsonl").open_entries()),
        processes(home.folder),
    )


NOTHING: tuple[list[str], list[str], list[object], list[int]] = ([], [], [], [])


def test_the_image_lies_on_it_while_a_cell_runs(home: Home, image: Path) -> None:
    begun(home, image, "0")
    _, words = home.started[0].communicate(timeout=240)
    assert home.started[0].returncode == 0, words
    assert "the image lies on a loop device" in [notice["text"] for notice in home.events("Notice")]
    (probed,) = home.events("HostProbed")
    assert probed["host"]["disk"]["emulated"] is True
    assert probed["host"]["disk"]["device"].startswith("loop")
    until(lambda: left(home) == NOTHING, "nothing is left", 120)
    assert image.read_bytes() == CONTENT


@pytest.mark.parametrize("who", ["runner_pid", pytest.param("launcher_pid", marks=pytest.mark.exhaustive)])
def test_nothing_is_left_after_a_kill(home: Home, image: Path, who: str) -> None:
    begun(home, image, "600")
    assert len(left(home)[0]) == 1
    os.kill(home.pid(who), signal.SIGKILL)
    home.started[0].communicate(timeout=240)
    until(lambda: not left(home)[3], "the end of all processes", 240)
    home.run("clean")
    until(lambda: left(home) == NOTHING, "nothing is left", 120)
    assert image.read_bytes() == CONTENT


def test_nothing_is_left_after_a_stop(home: Home, image: Path) -> None:
    begun(home, image, "600")
    code, _, words = home.run("stop")
    assert code == 0, words
    assert home.started[0].communicate(timeout=240) is not None
    until(lambda: left(home) == NOTHING, "nothing is left", 120)
