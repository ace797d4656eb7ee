"""Workloads on the host: staged and rehearsed as in guests, with files of each tile's own that start cold."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.image import small_image
from tests.fakes.local_guest import LocalGuest
from tests.lab.one_cell import REPORT, Lab, scenario_plan
from tests.lab.provision.test_integrity import FrozenLab
from vmlab.guests.image.catalog import Image
from vmlab.hypervisor.disks.host_files import host_data
from vmlab.hypervisor.journal import Journal
from vmlab.lab.cell.common_start import start_together
from vmlab.lab.provision.host_side import HostTiles
from vmlab.model.errors import WorkloadError
from vmlab.model.run import Outcome
from vmlab.telemetry.host_counters import HostCounters
from vmlab.workloads.registry import kinds
from vmlab.workloads.shell import Shell
from vmlab.workloads.workload_steps import StagingContext, WorkloadContext

Step = tuple[str, str]


class HostLab(Lab):
    """A lab with the host as a place, whose folders are real."""

    @contextmanager
    def host_tiles(self, tiles: Sequence[int]) -> Iterator[HostTiles]:
        journal = Journal(self.folder / "journal.jsonl")
        with host_data(self.folder / "disks", "run", journal, tiles) as data:
            self.data = dict(data)
            self.places = {tile: LocalGuest("host", f"10.0.0.{tile}", self.folder) for tile in tiles}
            shells: dict[int, Shell] = {**self.places}
            yield HostTiles(shells, tuple(data.values()))


class FrozenHostLab(HostLab, FrozenLab):
    """The same with guests from snapshots."""


def with_host(events: int, tiles: int = 1) -> Any:
    """Two guests and the host, in as many tiles."""
    bare = f"  bare: {{kind: cpu, on: host, threads: 1, max_prime: 1000, events: {events}}}\n"
    axes = f"axes: {{tiles: [{tiles}]}}\n"
    return scenario_plan(lambda text: text.replace("events: 10}", f"events: {events}}}") + bare + axes)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Each step of the workloads, with its place."""
    taken: list[Step] = []

    def noting(step: str) -> Any:
        async def note(_workload: object, context: StagingContext | WorkloadContext) -> None:
            shell = context.shell if isinstance(context, StagingContext) else context.source
            taken.append((step, shell.name))

        return note

    for step in ("stage", "rehearse", "prepare"):
        monkeypatch.setattr(kinds()["cpu"], step, noting(step))
    return taken


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """A small image in a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return small_image()


async def test_beside_restored_guests_the_host_is_staged_and_rehearsed_alone(
    tmp_path: Path, built: Image, captured_events: int, steps: list[Step]
) -> None:
    lab = FrozenHostLab(tmp_path, captured_events, built)
    lab.plan = with_host(captured_events)
    assert await lab.cell().run() is Outcome.PASSED, lab.ended().reasons
    assert steps[:2] == [("stage", "host"), ("rehearse", "host")]
    assert sorted(steps[2:]) == [("prepare", "host"), ("prepare", "quick"), ("prepare", "slow")]


async def test_beside_guests_that_booted_nothing_is_rehearsed(
    tmp_path: Path, captured_events: int, steps: list[Step]
) -> None:
    lab = HostLab(tmp_path, f"cat <<'END'\n{REPORT}\nEND", with_host(captured_events))
    assert await lab.cell().run() is Outcome.PASSED, lab.ended().reasons
    assert sorted(steps[:3]) == [("stage", "host"), ("stage", "quick"), ("stage", "slow")]
    assert {step for step, _ in steps} == {"stage", "prepare"}


async def test_caches_of_the_host_that_somebody_empties_are_noticed_beside_workloads_there(
    tmp_path: Path, captured_events: int
) -> None:
    """These cannot: /proc is read-only where they run."""
    lab = HostLab(tmp_path, f"cat <<'END'\n{REPORT}\nEND", with_host(captured_events))
    lab.counters = [HostCounters(10.0), HostCounters(14.0, caches_dropped=1)]
    assert await lab.cell().run() is Outcome.INVALID
    assert lab.ended().reasons == ["the host's caches were emptied while the workloads ran (drop_caches)"]


def cached(file: Path) -> bool:
    """Whether any page of a file is in the page cache. A read with RWF_NOWAIT starts readahead."""
    fincore = ["fincore", "--noheadings", "--output", "PAGES", str(file)]
    return int(subprocess.run(fincore, capture_output=True, text=True, check=True).stdout) > 0


async def test_each_tile_has_its_own_files_and_they_are_cold_at_the_start(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = HostLab(tmp_path, f"cat <<'END'\n{REPORT}\nEND", with_host(captured_events, tiles=2))
    before: list[bool] = []
    at_start: list[bool] = []

    async def lay_out(_workload: object, context: WorkloadContext) -> None:
        if context.source.name == "host":
            assert context.source is lab.places[context.tile]
            file = lab.data[context.tile] / "sub" / "file"
            file.parent.mkdir()
            file.write_bytes(bytes(8192))
            (file.parent / "link").symlink_to("/nowhere")
            before.append(cached(file))

    async def look(*arguments: Any) -> Any:
        at_start.extend(cached(folder / "sub/file") for folder in lab.data.values())
        return await start_together(*arguments)

    monkeypatch.setattr(kinds()["cpu"], "prepare", lay_out)
    monkeypatch.setattr("vmlab.lab.cell.execution.start_together", look)
    assert await lab.cell().run() is Outcome.PASSED, lab.ended().reasons
    assert before == [True, True]
    assert at_start == [False, False]
    assert not (tmp_path / "disks/host.data").exists()
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []


async def test_the_files_go_after_a_cell_that_failed(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_workload: object, context: WorkloadContext) -> None:
        (lab.data[1] / f"half-{context.source.name}").touch()
        raise WorkloadError("no room")

    monkeypatch.setattr(kinds()["cpu"], "prepare", fail)
    lab = HostLab(tmp_path, "exit 1", with_host(captured_events))
    assert await lab.cell().run() is Outcome.FAILED
    assert not (tmp_path / "disks/host.data").exists()


async def test_files_that_cannot_be_removed_fail_the_cell_and_stay_in_the_journal(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> bool:
        raise OSError(5, "Input/output error", str(folder))

    monkeypatch.setattr("vmlab.hypervisor.disks.host_files.remove_tree", refuse)
    lab = HostLab(tmp_path, f"cat <<'END'\n{REPORT}\nEND", with_host(captured_events))
    assert await lab.cell().run() is Outcome.FAILED
    assert lab.ended().reasons == [f"clean-up: {tmp_path}/disks/host.data: Input/output error"]
    assert [entry.kind for entry in Journal(tmp_path / "journal.jsonl").open_entries()] == ["folder"]


async def test_a_cell_without_a_workload_there_makes_nothing(tmp_path: Path, captured_events: int) -> None:
    plan = scenario_plan(lambda text: text.replace("events: 10}", f"events: {captured_events}}}"))
    lab = HostLab(tmp_path, f"cat <<'END'\n{REPORT}\nEND", plan)
    assert await lab.cell().run() is Outcome.PASSED
    assert not (tmp_path / "journal.jsonl").exists()
