"""Real guests under embedded libvirt: every cache mode proven, and nothing left, however it ends."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.hypervisor.conftest import Start
from tests.processes import only_child
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.run import CACHE_MODES

pytestmark = [pytest.mark.guests, pytest.mark.usefixtures("image"), pytest.mark.timeout(1200)]


def said_by(lab: subprocess.Popen[str]) -> dict[str, Any]:
    assert lab.stdout is not None
    line = lab.stdout.readline()
    assert line, lab.communicate()[1]
    return dict(json.loads(line))


def traces(runtime: Path) -> list[str]:
    """QEMUs and cgroups of the lab at `runtime` that still exist."""
    qemus = [
        str(process.pid) for process in psutil.process_iter(["cmdline"]) if str(runtime) in str(process.info["cmdline"])
    ]
    prefix = cgroups.prefix_of(runtime / "v")
    groups = [path for place in cgroups.partitions(cgroups.hierarchies()) for path in place.glob(f"{prefix}*")]
    return qemus + [str(path) for path in groups]


@pytest.mark.exhaustive
def test_five_modes_are_proven_and_close_leaves_nothing(isolated: Start, runtime: Path, tmp_path: Path) -> None:
    lab = isolated("lab", str(runtime), str(tmp_path), "close", *CACHE_MODES)
    said = said_by(lab)
    proofs = said["proofs"]
    assert [proof["guest"] for proof in proofs] == [mode for mode in CACHE_MODES for _ in range(2)]
    assert [proof["file"].rpartition(".")[2] for proof in proofs] == ["qcow2", "raw"] * 5
    assert [proof for proof in proofs if not proof["agrees"]] == []
    direct = {proof["guest"]: proof["o_direct"] for proof in proofs}
    assert direct == {mode: mode in ("none", "directsync") for mode in CACHE_MODES}
    names = {f"{mode}-1" for mode in CACHE_MODES}
    assert said["cpu"].keys() == said["stats"].keys() == names
    assert all(0.5 < seconds < 120 for seconds in said["cpu"].values())
    assert all(stats["block.0.rd.bytes"] > 2**20 for stats in said["stats"].values())
    assert said["facts"]["machine_type"].startswith("pc-q35-")
    assert len(set(said["shares"])) == 5, "each guest's own shares reached the kernel"
    assert said["refused"]["running"] == [] and said["refused"]["error"].startswith("bad-1: starting: ")

    rest, complaints = lab.communicate(timeout=600)
    assert lab.returncode == 0, complaints
    assert json.loads(rest) == {"left": []}
    assert [line for line in complaints.splitlines() if not line.startswith("KVM is not used: ")] == []
    assert traces(runtime) == []
    assert list(runtime.iterdir()) == []
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []
    assert list((tmp_path / "disks").iterdir()) == []


def test_a_killed_runner_leaves_only_what_a_sweep_removes(isolated: Start, runtime: Path, tmp_path: Path) -> None:
    lab = isolated("lab", str(runtime), str(tmp_path), "hang", "none", "writeback")
    said_by(lab)
    assert len([trace for trace in traces(runtime) if trace.isdigit()]) >= 2
    init = only_child(lab.pid, bool)
    runner = only_child(init.pid, lambda words: "lab" in "".join(words[2:3]))
    runner.send_signal(signal.SIGKILL)
    lab.communicate(timeout=600)
    assert lab.returncode == 128 + signal.SIGKILL
    assert [trace for trace in traces(runtime) if trace.isdigit()] == [], "the kernel ended every QEMU"

    removed = sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test")
    assert str(tmp_path / "disks" / "none-1.qcow2") in removed
    assert str(runtime / "v") in removed
    assert traces(runtime) == []
    assert list(tmp_path.glob("**/*.qcow2")) == []
    assert sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test") == []
