"""Events in, pictures out: by hand for each rule, and over a run that was really recorded."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tui.conftest import RECORDED, RUN
from vmlab.model.cell_event import (
    CacheSwitched,
    CellEnded,
    CellStarted,
    GuestStateChanged,
    PhaseStarted,
    SnapshotMade,
    SnapshotProgressed,
    WorkloadEnded,
    WorkloadProgressed,
    WorkloadStarted,
)
from vmlab.model.event import (
    RESUME,
    CellsReplanned,
    CellWithdrawn,
    CommandReceived,
    Event,
    HostProbed,
    RunEnded,
    RunStarted,
)
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.screens.watch_screen import freezing_lines
from vmlab.tui.state.run_state import RunState
from vmlab.tui.state.views import NO_RUN, Part, RunView
from vmlab.tui.widgets.status_strip import _what


def fed(events: Iterable[Event], **known: Any) -> RunView:
    state = RunState(**known)
    for event in events:
        state.apply(event)
    return state.snapshot()


def beginning() -> list[Event]:
    return [
        RunStarted(run="r", scenario="tile", size="smoke", seed=1, cells=2, expected_seconds=100, mono=10.0),
        HostProbed(accelerator="tcg", host={}, mono=11.0),
        CellStarted(cell=1, axes={"tiles": 1, "cache": "none"}, repeat=1, guests=1, mono=12.0),
        GuestStateChanged(cell=1, tile=1, guest="front", role="web", state="prepared", mono=13.0),
        PhaseStarted(cell=1, phase="execute", mono=20.0),
    ]


def progress(done: float, stage: str = "", mono: float = 21.0) -> WorkloadProgressed:
    return WorkloadProgressed(cell=1, workload="web", tile=1, done=done, total=10, unit="", stage=stage, mono=mono)


def test_a_run_that_goes_on_has_each_cell_once_and_a_mark_where_it_was_resumed() -> None:
    end = {"cell": 1, "wall_seconds": None, "start_skew_ms": None}
    again = [event for event in beginning() if getattr(event, "cell", 0)]
    coming: Any = [{"cell": 1, "axes": {}, "repeat": 1, "state": "planned", "planned": {}}]
    view = fed(
        [
            *beginning(),
            CommandReceived(command="stop", origin="vmlab stop", mono=21.0),
            CellEnded(**end, outcome="aborted", reasons=["stopped"], mono=22.0),  # type: ignore[arg-type]
            CommandReceived(command=RESUME, origin="vmlab resume", mono=23.0),
            CellWithdrawn(cell=1, name="", reason="the run was cut off", mono=23.0),
            CellsReplanned(cells=2, next_axes={}, expected_seconds=50.0, coming=coming, mono=24.0),
            *(replace(event, mono=event.mono + 15) for event in again),
            CellEnded(**end, outcome="passed", reasons=[], mono=40.0),  # type: ignore[arg-type]
        ]
    )
    assert [(cell.number, cell.outcome) for cell in view.cells] == [(1, "passed")]
    assert not view.stopping
    marks = [moment.word for moment in view.moments]
    assert "resumed" in marks and "changed" not in marks


def test_what_comes_at_once_and_says_the_same_has_one_line() -> None:
    started = [
        WorkloadStarted(
            cell=1,
            tile=tile,
            workload="web",
            benchmark="http",
            guest="front",
            late_ms=tile * 1.5,
            uncertainty_ms=0.1,
            mono=20.0 + tile / 50,
        )
        for tile in (1, 2, 3)
    ]
    log = [line.text for line in fed([*beginning(), *started]).log]
    assert log[-1] == "3 workloads started within 40 ms, 4.5 ms late at most"
    later = replace(started[0], tile=4, mono=30.0)
    log = [line.text for line in fed([*beginning(), *started, later]).log]
    assert log[-2:] == [
        "3 workloads started within 40 ms, 4.5 ms late at most",
        "tile 4 web started on front, 1.5 ms late",
    ]


def test_nothing_is_known_before_the_first_event() -> None:
    assert fed([]) == NO_RUN


def test_an_emulated_disk_stands_beside_the_accelerator() -> None:
    host = {"disk": {"emulated": True, "profile": "hdd-7200"}}
    view = fed([beginning()[0], HostProbed(accelerator="kvm", host=host, mono=11.0)])
    assert view.ordered == ("emulated disk",)
    assert [text for part in _what(view, 100) for text, _ in part][-2:] == ["KVM", "emulated disk"]
    assert fed(beginning()).ordered == ()


@pytest.mark.parametrize(("guests", "accelerator"), [(1, "tcg"), (0, "")])
def test_a_host_that_works_alone_is_not_called_emulated(guests: int, accelerator: str) -> None:
    begin, probed, cell, *_ = beginning()
    assert isinstance(cell, CellStarted)
    assert fed([begin, probed]).accelerator == "tcg", "it may yet have guests"
    assert fed([begin, probed, replace(cell, guests=guests)]).accelerator == accelerator


def test_a_workload_shows_how_far_it_is_and_makes_its_guest_run() -> None:
    started = WorkloadStarted(
        cell=1, workload="web", tile=1, guest="front", benchmark="http", late_ms=1, uncertainty_ms=1, mono=20.5
    )
    view = fed([*beginning(), started, progress(4)])
    (guest,) = view.guests
    assert guest.state == "running"
    (workload,) = guest.workloads
    assert (workload.fraction, workload.outcome, workload.elapsed(25.5)) == (0.4, "running", 5.0)


def test_a_workload_that_speaks_before_it_is_told_of_is_put_where_the_scenario_says() -> None:
    view = fed([*beginning(), progress(4)], intent={"web": Part("front", "back")})
    assert view.guests[0].workloads[0].began == 20.0


def test_a_client_that_has_ended_keeps_its_time_until_the_figures_are_verified() -> None:
    intent = {"web": Part("front")}
    view = fed([*beginning(), progress(4), progress(1, "done", mono=26.0)], intent=intent)
    workload = view.guests[0].workloads[0]
    assert (workload.stage, workload.elapsed(99.0), workload.outcome) == ("done", 6.0, "running")
    ended = WorkloadEnded(cell=1, workload="web", tile=1, guest="front", outcome="failed", seconds=5.5, reason="no")
    workload = fed([*beginning(), progress(4), ended], intent=intent).guests[0].workloads[0]
    assert (workload.outcome, workload.seconds) == ("failed", 5.5)


def test_a_time_stands_against_the_last_one_under_the_same_axes() -> None:
    past = {("web", 1, (("tiles", 1), ("cache", "none"))): 7.5, ("web", 1, (("tiles", 2), ("cache", "none"))): 99.0}
    view = fed([*beginning(), progress(1)], past=past, intent={"web": Part("front")})
    assert view.guests[0].workloads[0].last_seconds == 7.5


def test_a_new_cell_has_new_guests_and_the_old_one_is_kept() -> None:
    ended = CellEnded(cell=1, outcome="invalid", reasons=["skew"], wall_seconds=9, start_skew_ms=1)
    following = CellStarted(cell=2, axes={"tiles": 1, "cache": "writeback"}, repeat=1, guests=1)
    view = fed([*beginning(), ended, following])
    assert view.guests == ()
    assert [cell.outcome for cell in view.cells] == ["invalid"]
    assert view.cell is not None and view.cell.axis("cache") == "writeback"


def test_cells_to_come_that_were_changed_are_told_until_the_next_one_begins() -> None:
    changed = CellsReplanned(cells=3, next_axes={"tiles": 2, "cache": "none"}, expected_seconds=50, mono=30.0)
    view = fed([*beginning(), changed])
    assert (view.cells_planned, view.expected_seconds) == (3, 70.0)
    assert view.next_axes == (("tiles", 2), ("cache", "none"))
    following = CellStarted(cell=2, axes={"tiles": 2, "cache": "none"}, repeat=1, guests=1)
    assert fed([*beginning(), changed, following]).next_axes is None


def test_a_stop_and_an_end_are_told() -> None:
    stopping = fed([*beginning(), CommandReceived(command="stop", origin="the console")])
    assert stopping.stopping and stopping.outcome == "running"
    over = fed([*beginning(), RunEnded(outcome="aborted", exit_code=130, reason="stopped", mono=60.0)])
    assert (over.outcome, over.reason, over.elapsed(1e9)) == ("aborted", "stopped", 50.0)


def test_a_run_whose_processes_are_gone_is_aborted() -> None:
    state = RunState()
    for event in beginning():
        state.apply(event)
    state.abandon(44.0, "its processes are gone")
    view = state.snapshot()
    assert (view.outcome, view.reason, view.elapsed(99.0)) == ("aborted", "its processes are gone", 34.0)


@pytest.fixture(scope="module")
def recording() -> RecordedRun:
    return RecordedRun(RECORDED)


def test_a_recorded_run_is_told_to_its_end(recording: RecordedRun) -> None:
    view = fed(recording.events, intent=recording.intent)
    assert (view.id, view.scenario, view.size, view.outcome) == (RUN, "tile", "smoke", "passed")
    assert [(cell.axis("cache"), cell.outcome) for cell in view.cells] == [("none", "passed"), ("writeback", "passed")]
    assert {guest.guest for guest in view.guests} == {"file-a", "file-b", "front", "database"}
    times = {w.name: w.seconds for guest in view.guests for w in guest.workloads}
    assert times.keys() == {"filecopy", "database", "web", "mail"}
    assert all(seconds and seconds > 1 for seconds in times.values())
    assert next(guest for guest in view.guests if guest.guest == "file-b").serves == ("filecopy",)


def test_winding_gives_the_same_picture_as_playing(recording: RecordedRun) -> None:
    """A moment reached in small steps and the same moment jumped to are one and the same."""
    moment = recording.length * 0.6
    stepped: list[Event] = []
    position = -1.0
    while position < moment:
        following = min(moment, position + 0.7)
        stepped += recording.between(recording.began + position, recording.began + following)[0]
        position = following
    jumped, _ = recording.before(recording.began + moment)
    assert fed(stepped, intent=recording.intent) == fed(jumped, intent=recording.intent)


def test_a_store_without_events_cannot_be_played(tmp_path: Path) -> None:
    from vmlab.model.errors import UsageError
    from vmlab.store.writer import RunWriter

    RunWriter(tmp_path / "run.sqlite").close()
    with pytest.raises(UsageError, match="nothing was recorded yet"):
        RecordedRun(tmp_path / "run.sqlite")


def test_the_cell_after_this_one_is_known_until_the_user_changes_the_plan() -> None:
    planned = [(("cache", "none"),), (("cache", "writeback"),)]
    first = CellStarted(cell=1, axes={"cache": "none"}, repeat=1, guests=4)
    second = CellStarted(cell=2, axes={"cache": "writeback"}, repeat=1, guests=4)
    changed = CellsReplanned(cells=2, next_axes={"cache": "none"}, expected_seconds=1)
    assert fed([*beginning(), first], planned=planned).coming == planned[1]
    assert fed([*beginning(), first, second], planned=planned).coming is None
    assert fed([*beginning(), first, changed], planned=planned).coming == (("cache", "none"),)
    assert fed([*beginning(), first, changed, second], planned=[*planned, planned[0]]).coming is None


def test_cells_phases_and_changes_are_marked_on_the_time_axis() -> None:
    events = [
        *beginning(),
        CellStarted(cell=1, axes={"cache": "none"}, repeat=1, guests=4, mono=20.0),
        PhaseStarted(cell=1, phase="provision", mono=21.0),
        CommandReceived(command="set cache none", origin="me", mono=25.0),
        CellsReplanned(cells=2, next_axes={"cache": "none"}, expected_seconds=1, mono=25.0),
        CellsReplanned(cells=3, next_axes={"cache": "none"}, expected_seconds=1, mono=25.5),
        CacheSwitched(
            cell=1, origin="me", before="none", after="writeback", pauses_ms={}, drained_seconds=0.0, mono=26.0
        ),
    ]
    marks = [(moment.mono, moment.word) for moment in fed(events).moments][-4:]
    assert marks == [(20.0, "cell 1"), (21.0, "provision"), (25.0, "changed"), (26.0, "cache writeback")]


def test_guests_that_are_frozen_say_how_far_they_are() -> None:
    def at(guest: str, stage: str, mono: float) -> Event:
        return SnapshotProgressed(cell=1, guest=guest, stage=stage, mono=mono)

    run = fed(
        [
            *beginning(),
            CellStarted(cell=1, axes={"cache": "none"}, repeat=1, guests=4, mono=20.0),
            at("file-a", "waits for a processor", 21.0),
            at("front", "waits for a processor", 21.0),
            at("file-a", "boots", 22.0),
            at("front", "boots", 25.0),
            SnapshotMade(cell=1, guest="file-a", snapshot="s", seconds=61.0, mono=82.0),
        ]
    )
    told = freezing_lines(run, 91.0)
    assert told[0].endswith("1 of 2 so far.")
    assert [line.split() for line in told[1:]] == [
        ["file-a", "is", "frozen,", "after", "1:01"],
        ["front", "boots,", "1:10"],
    ]
    again = CellStarted(cell=2, axes={"cache": "none"}, repeat=1, guests=4, mono=100.0)
    assert freezing_lines(fed([*beginning(), at("file-a", "boots", 21.0), again]), 101.0) == ()


def test_the_list_in_the_record_tells_each_cell_that_follows_a_change() -> None:
    first = CellStarted(cell=1, axes={"cache": "none"}, repeat=1, guests=4)
    third = CellStarted(cell=3, axes={"cache": "directsync"}, repeat=1, guests=4)
    fourth = CellStarted(cell=4, axes={"cache": "none"}, repeat=2, guests=4)
    states = {2: "skipped", 3: "changed", 4: "planned", 5: "skipped"}
    listed = [
        {"cell": cell, "axes": {"cache": f"of {cell}"}, "repeat": 1, "state": state, "planned": {"cache": "none"}}
        for cell, state in states.items()
    ]
    changed = CellsReplanned(cells=4, next_axes={"cache": "of 3"}, expected_seconds=1, coming=listed)
    assert fed([*beginning(), first, changed]).coming == (("cache", "of 3"),)
    assert fed([*beginning(), first, changed, third]).coming == (("cache", "of 4"),)
    assert fed([*beginning(), first, changed, third, fourth]).coming is None
    none = CellsReplanned(cells=1, next_axes={}, expected_seconds=0, coming=listed[:1])
    view = fed([*beginning(), first, none], planned=[(("cache", "none"),), (("cache", "writeback"),)])
    assert view.next_axes is None and view.coming is None
