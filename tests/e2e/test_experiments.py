"""A sample of the experiments on real guests: what `make test-experiments` checks of all, and more of these two."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.e2e.conftest import Home
from tests.e2e.test_real_runs import ON_A_BUSY_MACHINE
from tests.experiments.judged import faults_beside, faults_of_run
from tests.experiments.run_claims import CONTROL
from vmlab.plan.scenario_file.loading import load
from vmlab.workloads.kinds.memcpy import parse_mbw
from vmlab.workloads.reports.fio_report import parse_fio

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]


def _ran(home: Home, name: str, *options: str) -> dict[str, Any]:
    """The run's document; it is whole, and beside its publication nothing is missing."""
    ran = home.vmlab(
        "run", name, "--size", "smoke", *ON_A_BUSY_MACHINE, "--set", "order=as written", *options, "--json"
    )
    assert ran.returncode == 0, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    assert list(faults_of_run(document)) == []
    reference = load(name).scenario.reference
    assert reference is not None
    beside = json.loads(home.vmlab("show", "last", "--reference", "--json").stdout)
    assert list(faults_beside(reference, beside, home.vmlab("show", "last", "--reference").stdout)) == []
    assert beside["run"]["id"] == document["run"]["id"]
    assert home.leftovers() == []
    assert home.processes() == []
    return document


def _printed(home: Home, cell: int, name: str) -> str:
    """What the tool of a cell's only workload printed."""
    raw = json.loads(home.vmlab("show", f"last:{cell}", "--raw", "--json").stdout)
    (text,) = [output["text"] for output in raw["outputs"] if output["name"] == name]
    return str(text)


def _figures(cell: dict[str, Any]) -> dict[str, float]:
    return {one["metric"]: one["value"] for one in cell["measurements"]}


def test_memory_is_copied_on_the_host_and_in_a_guest(home: Home) -> None:
    document = _ran(home, "memcpy-overhead")
    assert [cell["axes"]["setup"] for cell in document["cells"]] == ["host", "vm"]
    assert [cell["provision"]["guests"] for cell in document["cells"]] == [0, 1]
    for cell in document["cells"]:
        average = parse_mbw(_printed(home, cell["cell"], "mbw"))["MEMCPY"].average
        assert _figures(cell)["memcpy_bandwidth"] == pytest.approx(average.rate * 2**20, rel=0.01)


@pytest.mark.nightly
def test_a_preallocated_data_disk_is_written_beside_the_host_s_own_folder(home: Home) -> None:
    document = _ran(home, "disk-allocation", "--set", "axes.setup=[host, full]", "--set", "axes.job=[4k-write]")
    host, guest = document["cells"]
    for cell in (host, guest):
        wrote = parse_fio(_printed(home, cell["cell"], "fio")).write
        figures = _figures(cell)
        assert figures["blocks"] == wrote.blocks > 0
        assert figures["iops"] == pytest.approx(wrote.blocks / wrote.seconds)
    assert (host["provision"]["guests"], host["cache_proof"], host["seen_in_guests"]) == (0, [], [])
    (seen,) = guest["seen_in_guests"]
    assert seen["data_disk"]["bytes"] == 2**30
    proofs = [proof for proof in guest["cache_proof"] if ".data." in proof["file"]]
    assert proofs and all(proof["agrees"] and proof["o_direct"] for proof in proofs)
    assert guest["settings"]["allocation"] == "full"


@pytest.mark.exhaustive
def test_guests_reach_each_other_through_a_tunnel_or_translated_and_within_a_limit(home: Home) -> None:
    document = _ran(home, "network-vpc", "--set", "guests.far.bandwidth=30 Mbit/s")
    host, guests, elastic = document["cells"]
    assert (host["axes"]["path"], host["network_proof"]) == ("host-to-host", [])
    figures, proofs = _figures(guests), guests["network_proof"]
    assert [(proof["device"], proof["direction"]) for proof in proofs] == [
        ("tunnel", "both"),
        ("cable", "both"),
        ("limit", "to"),
        ("limit", "from"),
        ("limit", "both"),
    ]
    assert all(proof["agrees"] for proof in proofs)
    tunnel, cable, to, by, _ = (proof["carried_bytes"] for proof in proofs)
    assert min(tunnel, cable, to) > figures["bytes"] > by
    assert 8 * figures["throughput"] < 1.1 * 30e6
    figures, proofs = _figures(elastic), elastic["network_proof"]
    assert [(proof["device"], proof["guest"], proof["direction"]) for proof in proofs] == [
        (device, guest, direction)
        for device, guest in (("nat", "t1-near"), ("nat", "t1-far"), ("limit", "t1-far"))
        for direction in ("to", "from", "both")
    ]
    assert all(proof["agrees"] for proof in proofs)
    (back, there, _), (to, by, _) = ([proof["carried_bytes"] for proof in proofs[at : at + 3]] for at in (0, 3))
    assert min(there, to) > figures["bytes"] > max(back, by) > 0, "each packet is translated twice, and so are answers"
    assert 8 * figures["throughput"] < 1.1 * 30e6


@pytest.mark.alone
@pytest.mark.exhaustive
@pytest.mark.skipif("VMLAB_CLAIMS" not in os.environ, reason="takes five minutes alone: make test-experiments")
def test_claims_whose_answers_are_known_beforehand_are_answered_so(home: Home) -> None:
    """Twice the same, a disk that is slowed down, and memory: each claim says what it is by construction."""
    once = ("--size", "smoke", "--repeats", "claims-once")
    ran = home.vmlab("run", str(CONTROL), *once, "--wait", *ON_A_BUSY_MACHINE, "--json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert list(faults_of_run(document)) == []
    claims = json.loads(home.vmlab("show", "last", "--reference", "--json").stdout)["claims"]
    known = {"true by construction": "reproduced", "false by construction": "not"}
    expected = [known[claim["there"].split(":")[0]] for claim in claims]
    assert [claim["answer"] for claim in claims] == expected
    assert {*expected} == {*known.values()}
    assert home.leftovers() == []
