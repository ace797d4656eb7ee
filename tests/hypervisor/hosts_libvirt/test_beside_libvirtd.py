"""A lab on a real libvirtd that others use, in namespaces of its own: does what embedded does, and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import Start
from tests.private_libvirtd import NEEDED, disk_folder, require_untouched, told_by

__all__ = ["disk_folder"]

pytestmark = [pytest.mark.guests, pytest.mark.timeout(1200), *NEEDED]
PROGRAM = "tests.hypervisor.programs.beside_libvirtd"


def require_what_both_do(first: dict[str, Any], second: dict[str, Any]) -> None:
    """What the program ``bare`` says of a hypervisor of either kind."""
    assert first["refused"].startswith("bad-1: starting: ")
    assert first["stats"] == ["db-1", "web-1"]
    assert all(seconds > 0 for seconds in first["cpu"].values())
    assert first["emulator_weights"] in (["cpu.shares 2"] * 2, ["cpu.weight 1"] * 2)
    assert [proof["o_direct"] for proof in first["proofs"]] == [False] * 4
    assert second["helpers"] == [True, True]
    switched = second["switched"]
    assert switched["before"] == [False, False, False, True], "below a block device nothing is cached"
    assert switched["after"] == [True] * 4
    assert switched["counted"] == ["data", "root"] and switched["merged"]["web-1"] > 0
    assert second["frozen"] == {
        "files": ["clone-1.qcow2", "disk.qcow2", "root.raw", "clone-2.qcow2", "disk.qcow2", "root.raw"],
        "running": ["clone-1", "clone-2", "db-1", "web-1"],
    }


def test_embedded_does_the_same(isolated: Start, runtime: Path, disk_folder: Path) -> None:
    lab = isolated("bare", str(runtime), str(disk_folder), "close")
    said, complaints = lab.communicate(timeout=600)
    assert lab.returncode == 0, complaints
    first, second = map(json.loads, said.splitlines())
    assert first["facts"]["hypervisor"] == "embedded" and first["host_pids"] == 0
    require_what_both_do(first, second)


def test_guests_are_switched_frozen_restored_and_gone(disk_folder: Path) -> None:
    (document,) = told_by(PROGRAM, disk_folder, "nobody", "bare", "close", seconds=1100)
    assert document["status"] == 0
    first, second = document["said"]
    assert first["facts"]["hypervisor"] == "qemu:///system"
    assert first["network"]["range"] == "198.18.128.0/17", "others have the first one"
    assert first["host_pids"] == 2
    assert document["during"]["domains"] == ["test-db-1", "test-web-1"]
    assert document["during"]["networks"] == [first["network"]["bridge"]]
    assert len(document["during"]["processes"]) == 2, "two QEMUs, and no dnsmasq"
    require_what_both_do(first, second)
    assert "is not this lab's" in second["decoy"]
    assert document["removed"] == [], "it has cleared up itself"
    require_untouched(document)


def test_whoever_is_killed_nothing_is_left_and_nobody_else_is_touched(disk_folder: Path) -> None:
    for document in told_by(PROGRAM, disk_folder, "runner,init,launcher", "bare", "hang", seconds=1100):
        assert document["status"] != 0
        assert document["during"]["domains"] == ["test-db-1", "test-web-1"]
        assert document["domains_ended_by_themselves"]
        assert any(one.startswith("network vmlab-") for one in document["removed"])
        require_untouched(document)
