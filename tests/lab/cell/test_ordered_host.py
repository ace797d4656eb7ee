"""Runs on a limited host, whose cgroups here nobody makes: what is dropped before, recorded and told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.runs import PASSED, MemoryRun
from vmlab.lab.cell import caches
from vmlab.lab.run.parts import ordered_host
from vmlab.model.cell_event import PhaseStarted
from vmlab.model.event import Event, HostProbed
from vmlab.model.scenarios.host_settings import HostSize

pytestmark = pytest.mark.usefixtures("own_folders")
ORDERED = "host: {cpus: 2, memory: 4 GiB}\n"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Phases, and files whose pages are dropped, in their order."""
    found: list[str] = []
    monkeypatch.setattr(caches, "_empty", lambda file: found.append(Path(file).name))
    return found


def noting(steps: list[str], changes: str) -> MemoryRun:
    def note(event: Event, _run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted):
            steps.append(str(event.phase))

    return MemoryRun(changes, on=[note])


@pytest.mark.parametrize("warm", ["", "warm: true\n"])
async def test_pages_of_the_image_are_dropped_before_guests_start_also_where_they_start_warm(
    steps: list[str], warm: str
) -> None:
    run = noting(steps, ORDERED + warm)
    await run.run()
    assert run.outcomes() == [PASSED]
    assert steps[: steps.index("provision")] == [run.image.disk.name]


async def test_on_the_host_as_it_is_none_are_dropped_then(steps: list[str]) -> None:
    run = noting(steps, "")
    await run.run()
    assert steps[: steps.index("provision")] == []


async def test_the_facts_of_the_host_say_what_was_ordered() -> None:
    run = MemoryRun(ORDERED)
    await run.run()
    (probed,) = run.of(HostProbed)
    assert probed.host["ordered"] == {"cpus": 2, "memory_bytes": 4 * 2**30}


async def test_the_facts_of_the_host_as_it_is_say_nothing_of_one() -> None:
    run = MemoryRun()
    await run.run()
    (probed,) = run.of(HostProbed)
    assert "ordered" not in probed.host


@pytest.mark.parametrize(("changes", "size"), [(ORDERED, HostSize(2, 4 * 2**30)), ("host: {ksm: off}\n", None)])
def test_only_an_order_makes_one(changes: str, size: HostSize | None) -> None:
    run = MemoryRun(changes)
    found = ordered_host(run.folder, run.plan)
    assert (None if found is None else found.size) == size
