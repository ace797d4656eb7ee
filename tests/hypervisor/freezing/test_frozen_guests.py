"""One real guest frozen, and its clones: the same data, and nothing else in common."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start

pytestmark = [pytest.mark.guests, pytest.mark.usefixtures("image"), pytest.mark.timeout(1200)]


def test_a_guest_is_frozen_once_and_cloned(isolated: Start, runtime: Path, tmp_path: Path) -> None:
    lab = isolated("frozen", str(runtime), str(tmp_path))
    answer, complaints = lab.communicate(timeout=900)
    assert lab.returncode == 0, complaints
    said = json.loads(answer)

    frozen = said["frozen"]
    assert frozen["said"] == ["template", str(8 * 2**30 // 512)]
    assert frozen["files"] == ["disk.qcow2", "machine.json", "ram"]
    assert frozen["cards"] == {} and frozen["overlays"] == [], "the guest that was saved is gone"
    assert frozen["machine"]["machine_type"].startswith("pc-q35-") and frozen["machine"]["write_cache"] is True

    guests = said["cloned"]["guests"]
    for apart in ("random", "machine_id", "hostname", "host_key", "mac"):
        assert len({str(guest[apart]) for guest in guests}) == 3, apart
    assert all(len(guest["random"]) == 32 for guest in guests)
    assert all(guest["clock_close"] for guest in guests)
    assert all(guest["journal"] == guest["machine_id"] for guest in guests), "readers find the journal"
    assert all(guest["boots"] == "0" for guest in guests), "what the template logged is not theirs"
    assert all("198.18.0.9 other" in guest["hosts"] for guest in guests)
    prepared = hashlib.sha256(bytes(range(256)) * 400).hexdigest()
    assert {guest["prepared"] for guest in guests} == {prepared}

    proofs = said["cloned"]["proofs"]
    assert [Path(proof["file"]).name for proof in proofs[:3]] == ["clone-1.qcow2", "disk.qcow2", "root.raw"]
    assert len(proofs) == 9 and all(proof["agrees"] and proof["o_direct"] for proof in proofs)
    assert said["apart"] == {"seen": [prepared, "/srv/prepared"], "saved_disk_stays": True}

    for refusal in said["refused"].values():
        assert refusal["running"] == refusal["overlays"] == [], refusal
    truncated = said["refused"]["truncated"]
    assert truncated["error"] == "SnapshotError" and "clone-2: snapshot cut does not load" in truncated["said"]
    flipped = said["refused"]["flipped"]
    assert (
        flipped["error"] == "SnapshotError" and "snapshot flipped is damaged: ram is not what it was" in flipped["said"]
    )
    headless = said["refused"]["headless"]
    assert headless["error"] == "SnapshotError" and "qemu-img could not make clone-2.qcow2" in headless["said"]
    assert {what: said["refused"][what]["snapshot"] for what in ("truncated", "flipped", "headless")} == {
        "truncated": "cut",
        "flipped": "flipped",
        "headless": "headless",
    }
    foreign = said["refused"]["foreign"]
    assert foreign["error"] == "SnapshotError" and "vcpus, write_cache differ" in foreign["said"]
    assert said["refused"]["called_off"]["said"] == "called off"
    before, after = said["held"]
    assert after["qemus"] == 0 and after["descriptors"] <= before["descriptors"]


@pytest.mark.exhaustive
def test_two_runs_of_a_cell_begin_with_the_same_data(isolated: Start, runtime: Path, tmp_path: Path) -> None:
    lab = isolated("same_state", str(runtime), str(tmp_path), "tile")
    answer, complaints = lab.communicate(timeout=900)
    assert lab.returncode == 0, complaints
    first, second = json.loads(answer)
    assert first.keys() == second.keys() == {"file-a", "file-b", "front", "database"}
    for guest, held in first.items():
        own = {what: held.pop(what) for what in ("machine_id", "host_key")}
        others = {what: second[guest].pop(what) for what in own}
        assert held == second[guest], guest
        assert all(own[what] != others[what] for what in own), "a clone has an identity of its own"
        assert all(" of 0 bytes" not in found for found in held.values()), "a sum of nothing proves nothing"
    assert "postgresql" in first["database"] and "mariadb" in first["front"]
    assert len({held["snapshot"] for held in first.values()}) == 4
