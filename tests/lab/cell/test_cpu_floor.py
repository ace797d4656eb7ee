"""Work that was not done, by the CPU time that its guest used; and a tool whose time is not that of its client.

The rule: a guest that used less than a third of the CPU time that the same work took on this host, as the median of
the last cells that passed, did not do it, whatever its tool reports. What was never measured is said once a run, and
not judged.
"""

from __future__ import annotations

import json
import zlib
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.sysbench import EVENTS, cpu_report
from tests.lab.one_cell import Lab, lab_of, scenario_plan
from vmlab.lab.cell import workload_instance
from vmlab.lab.cell.cpu_floor import CpuFloor
from vmlab.model.cell_event import MeasurementTaken
from vmlab.model.run import Outcome
from vmlab.store.kept_file import CpuNeeds

FACTS = {"cpu": "a processor", "qemu": "7.2"}


AMOUNTS = {"events: 10}": f"events: {EVENTS}}}", "slow:  {memory": "slow:  {vcpus: 2, memory"}


def _changed(changes: dict[str, str], text: str) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


class Host:
    """A host on which one run after the other is made, each of one cell with two guests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "state" / "cpu-needs.json"
        self.file.parent.mkdir()
        self.runs = 0
        self.facts = dict(FACTS)
        self.notes: list[str] = []
        self.speed = 100.0

    async def run(self, quick: float, slow: float = 6.0, changes: dict[str, str] | None = None) -> Lab:
        """A run whose guests used so many seconds of CPU time."""
        self.runs += 1
        folder = self.folder / str(self.runs)
        folder.mkdir()
        lab = lab_of(folder, EVENTS)
        lab.plan = scenario_plan(partial(_changed, {**AMOUNTS, **(changes or {})}))
        lab.hypervisor.used = {"t1-quick": quick, "t1-slow": slow}
        lab.figures["cpu_speed_percent"] = self.speed
        self.notes = []
        lab.cpu_floor = CpuFloor(CpuNeeds(self.file), "tcg", self.facts, self.notes.append)
        await lab.cell().run()
        return lab


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


async def test_less_than_a_third_of_what_the_same_work_ever_took_is_not_that_work(host: Host) -> None:
    assert (await host.run(6.0)).ended().outcome == Outcome.PASSED
    assert (await host.run(2.01)).ended().outcome == Outcome.PASSED, "as long as it may have been so quick"
    ended = (await host.run(1.33)).ended()
    assert ended.outcome == Outcome.INVALID
    assert ended.reasons == [
        "tile 1 quick: its guest used 1.33 s of CPU time; on this host the same work took 4.00 s before (median), and "
        "less than a third of that does not do it"
    ]


async def test_work_that_was_not_done_at_first_is_seen_once_it_was_done(host: Host) -> None:
    """Else the first lie would let every other one pass."""
    assert (await host.run(0.3)).ended().outcome == Outcome.PASSED, "nothing is known yet"
    assert (await host.run(6.0)).ended().outcome == Outcome.PASSED
    assert (await host.run(0.3)).ended().outcome == Outcome.INVALID


async def test_nor_do_two_slow_cells_make_quick_ones_invalid(host: Host) -> None:
    for seconds in (6.0, 6.0, 6.0, 20.0, 20.0):
        await host.run(seconds)
    assert (await host.run(2.5)).ended().outcome == Outcome.PASSED


async def test_a_cell_that_did_not_pass_teaches_nothing(host: Host) -> None:
    await host.run(6.0)
    assert (await host.run(0.5)).ended().outcome == Outcome.INVALID
    assert (await host.run(1.5)).ended().outcome == Outcome.INVALID, "0.5 s would have been kept"


async def test_what_is_not_known_yet_is_said_once_a_run(host: Host) -> None:
    await host.run(6.0)
    assert host.notes == [
        "the CPU time of quick, slow on this host is not known yet: "
        "only the tool's own report shows that the work was done"
    ]
    await host.run(6.0)
    assert host.notes == []


async def test_another_guest_is_not_compared(host: Host) -> None:
    await host.run(6.0)
    lab = await host.run(0.1, changes={"quick: {memory": "quick: {vcpus: 4, memory"})
    assert lab.ended().outcome == Outcome.PASSED
    assert "of quick on this host" in host.notes[0]


async def test_what_a_guest_used_for_two_workloads_is_held_against_both_and_kept_for_none(host: Host) -> None:
    both = {"on: slow": "on: quick", "quick: {memory": "quick: {vcpus: 2, memory"}
    await host.run(6.0, changes=both)
    assert (await host.run(0.1, slow=3.0)).ended().outcome == Outcome.PASSED
    # Three times that at most, as each of the two asks twice.
    ended = (await host.run(0.3, changes=both)).ended()
    assert [reason.partition(":")[0] for reason in ended.reasons] == ["tile 1 quick", "tile 1 slow"]


async def test_nor_is_another_host(host: Host) -> None:
    await host.run(6.0)
    host.facts["cpu"] = "another processor"
    assert (await host.run(0.1)).ended().outcome == Outcome.PASSED


async def test_work_of_less_than_a_second_is_lost_in_what_a_guest_uses_besides(host: Host) -> None:
    await host.run(0.9)
    assert (await host.run(0.1)).ended().outcome == Outcome.PASSED


async def test_cpus_that_were_slow_teach_nothing(host: Host) -> None:
    host.speed = 50.0
    await host.run(9.0)
    host.speed = 100.0
    assert (await host.run(2.0)).ended().outcome == Outcome.PASSED


def sealed(text: str) -> bytes:
    """As a file is written whose content somebody made up."""
    return b"vmlab.cpu-needs/2 %08x\n%s" % (zlib.crc32(text.encode()), text.encode())


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"noise",
        b"\xff" * 5000,
        sealed("{"),
        sealed("[1]"),
        sealed("[" * 100_000),
        sealed('{"a": 1.0}'),
        sealed('{"a": []}'),
        sealed('{"a": ["much"]}'),
        sealed('{"a": [-1.0]}'),
        sealed('{"a": [1e999]}'),
        sealed('{"a": [true]}'),
        sealed('{"a": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}'),
    ],
)
async def test_a_damaged_file_is_none_and_is_said_once(host: Host, damaged: bytes) -> None:
    host.file.write_bytes(damaged)
    assert (await host.run(6.0)).ended().outcome == Outcome.PASSED
    assert [note for note in host.notes if "cannot be read" in note] and len(host.notes) == 2
    await host.run(6.0)
    assert host.notes == []


def test_the_file_keeps_what_was_measured_last(tmp_path: Path) -> None:
    needs = CpuNeeds(tmp_path / "needs")
    needs.learn((f"{number}", 2.0) for number in range(2500))
    needs.learn([("600", 3.0), ("601", 1.0), ("601", 1.5)])
    again = CpuNeeds(tmp_path / "needs")
    assert (again.usual("499"), again.usual("500"), again.usual("600"), again.usual("601")) == (None, 2.0, 2.5, 1.5)
    assert len(json.loads((tmp_path / "needs").read_bytes().partition(b"\n")[2])) == 2000


async def test_a_tool_that_reports_much_less_time_than_its_client_ran_gives_no_figure(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS, f"sleep 2.5; cat <<'END'\n{cpu_report()}\nEND")
    lab.hypervisor.waited = 0.0
    assert await lab.cell().run() is Outcome.FAILED
    assert lab.ended().reasons[0].startswith("tile 1 quick: cpu reports 0.001 s of work, but its client ran for ")
    assert lab.of(MeasurementTaken) == []


@pytest.mark.parametrize(("virtual", "granted"), [(False, 1.0), (True, 1.5)])
async def test_a_guest_of_a_virtual_host_may_take_as_long_as_an_emulated_one(
    virtual: bool, granted: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_instance, "in_virtual_machine", lambda: virtual)
    lab = lab_of(tmp_path, EVENTS, f"sleep 2.5; cat <<'END'\n{cpu_report()}\nEND")
    lab.hypervisor.waited, lab.hypervisor.accelerated_by = 0.0, "kvm"
    assert await lab.cell().run() is Outcome.FAILED
    assert f"; at most {granted} s go by around the work" in lab.ended().reasons[0]


async def test_nor_does_one_that_reports_more(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS, f"cat <<'END'\n{cpu_report(seconds=3600.0)}\nEND")
    assert await lab.cell().run() is Outcome.FAILED
    assert lab.ended().reasons[0].startswith("tile 1 quick: cpu reports 3600.000 s of work, but its client ran for ")


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (cpu_report(limit=100), "limit of sysbench's prime numbers: 100, but 1000 were asked for"),
        (cpu_report(threads=2), "threads of sysbench: 2, but 1 were asked for"),
    ],
)
async def test_less_work_than_was_asked_for_is_seen_in_the_report(tmp_path: Path, report: str, said: str) -> None:
    lab = lab_of(tmp_path, EVENTS, f"cat <<'END'\n{report}\nEND")
    assert await lab.cell().run() is Outcome.FAILED
    assert lab.ended().reasons[0] == f"tile 1 quick: {said}"
