"""A run for programs while it goes on: its events as they come, and what they change of it over the run's socket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.api.opened_run import Run, named, open_run
from vmlab.lab.commands.forced_end import end_run
from vmlab.lab.commands.stopping import STOP_SECONDS, is_over, run_meant
from vmlab.lab.commands.verbs import ChangeComing, ChangeRunning, ListComing, coming_document
from vmlab.lab.process.event_feed import watch
from vmlab.lab.process.host_recording import RecordingRequest, start_recording
from vmlab.lab.process.resuming import More
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.waiting_runs import demand_one_way
from vmlab.model.errors import UsageError
from vmlab.model.event import Event
from vmlab.model.run import RUNNING, Outcome
from vmlab.report.event_words import event_sentence
from vmlab.report.words import changed_now_words


@dataclass(frozen=True, slots=True)
class Change:
    """What was changed under running guests, which invalidates the cell; the end of a loop does not.

    `what` is ``cache``, ``ksm``, ``tiles`` or ``end``, which has neither `before` nor `after`. `pauses_ms` are by a
    guest's key how long it may have stood still. Before a switch of the cache mode the host wrote dirty pages of its
    disks for `drained_seconds`, in all `drained_bytes`; None for other changes, and where its kernel does not tell.
    `sentence` has that in words.
    """

    cell: int
    what: str
    before: str | int | None
    after: str | int | None
    sentence: str
    pauses_ms: Mapping[str, float] = field(default_factory=dict)
    drained_seconds: float | None = None
    drained_bytes: int | None = None


def stop_run(run: str | Run | None = None) -> Run:
    """Stop a run, or the one under way, as ``vmlab stop`` does: returns after its clean-up, within some minutes.

    What was measured is kept. A run that does not stop in time is killed. Raises VmlabError, with one line, for a run
    that is over, for one of another user, and where something of it is left on the host.
    """
    folder = _meant(run)
    end_run(folder, origin="vmlab.stop_run")
    return open_run(folder.path)


def coming_cells(run: str | Run | None = None) -> dict[str, Any]:
    """What ``vmlab set --list --json`` prints: the document ``vmlab.coming`` of docs/reference/json.md.

    Raises VmlabError as `set_coming_cells`.
    """
    folder = _meant(run)
    return coming_document(folder, ListComing(origin="vmlab.coming_cells").ask(folder)["coming"])


def set_coming_cells(
    run: str | Run | None = None,
    *,
    cell: int | None = None,
    cache: str | None = None,
    tiles: int | None = None,
    skip: bool = False,
    planned: bool = False,
) -> dict[str, Any]:
    """Change the cells to come of a run, or of the one under way, as ``vmlab set`` does; what is to come then.

    With `cell` it is the one with that number, which can also be left out (`skip`). `planned` puts them back as they
    were planned. The result is that of `coming_cells`.

    Raises VmlabError, with one line, and changes nothing, for what the run cannot do, for a run that is over or does
    not answer, and for one of another user.
    """
    folder = _meant(run)
    change = ChangeComing(
        origin="vmlab.set_coming_cells", cell=cell, cache=cache, tiles=tiles, skip=skip, as_planned=planned
    )
    return coming_document(folder, change.ask(folder)["coming"])


def set_running_cell(
    run: str | Run | None = None,
    *,
    cache: Literal["none", "writeback"] | None = None,
    ksm: Literal["on", "off"] | None = None,
    tiles: int | None = None,
    end: bool = False,
) -> Change:
    """Change one thing under the guests that run, as ``vmlab set --now`` does; returns when it is done.

    It is the cache mode of their disks, the host's KSM, or in a loop the number of tiles, one more or fewer, whose
    change begins. `end` ends the loop.

    Raises VmlabError, with one line, for what cannot be changed now, for a switch that did not work, for a run that is
    over or does not answer, and for one of another user.
    """
    wanted = {"cache": cache, "ksm": ksm, "tiles": tiles, "end": end or None}
    given = {name: value for name, value in wanted.items() if value is not None}
    if len(given) != 1:
        raise UsageError("of the cell that runs one thing is changed at a time: cache, ksm, tiles, or its end")
    done = ChangeRunning(origin="vmlab.set_running_cell", cache=cache, ksm=ksm, tiles=tiles, end=end).ask(_meant(run))
    return Change(
        cell=done["cell"],
        what=next(iter(given)),
        before=done.get("before"),
        after=done.get("after"),
        sentence=changed_now_words(done),
        pauses_ms=done.get("pauses_ms", {}),
        drained_seconds=done.get("drained_seconds"),
        drained_bytes=done.get("drained_bytes"),
    )


def _meant(run: str | Run | None) -> RunFolder:
    return run_meant(None if run is None else named(run))


_AS_USUAL = RecordingRequest(None)


def record_host(
    seconds: float | None = None,
    *,
    interval: float = _AS_USUAL.interval,
    keep_seconds: float = _AS_USUAL.keep_seconds,
    keep_bytes: int = _AS_USUAL.keep_bytes,
    blktrace: bool = False,
) -> str:
    """Begin to record this host and its own guests, as ``vmlab record --detach`` does; the run's id.

    It ends after `seconds`, or with `stop_run`. A sample is taken every `interval` seconds; the newest `keep_seconds`
    are kept, of at most `keep_bytes` on the disk. `blktrace` traces the requests to the guests' disks, which takes
    root. Raises VmlabError, with one line, for what makes no sense, and where the state folder cannot be written or
    nothing can be traced.
    """
    return start_recording(RecordingRequest(seconds, interval, keep_seconds, keep_bytes, blktrace)).id


def resume_run(
    run: str | Run, *, invalid: bool = False, repeats: int = 0, wait: bool = False, concurrent: bool = False
) -> str:
    """Have a run go on that was stopped or killed, or a fleet's whose controller was, as ``vmlab resume`` does; its id.

    It goes on in the background; a run on this host needs root. With `wait` it begins, and this returns, when its turn
    on this host has come; with `concurrent` it measures beside others. A run that has ended measures its `invalid` and
    failed cells once more, or so many further `repeats`, or both. Raises VmlabError, with one line, for a run that
    has measured all cells or is under way, for one that did not begin here, where the host is another by now, and
    without both where another run measures or waits.
    """
    demand_one_way(wait=wait, concurrent=concurrent)
    # Imported late: it loads SSH, which nothing else here needs.
    from vmlab.fleet.starting import resume

    folder = run_meant(named(run))
    resume(folder, More(invalid, repeats), concurrent=concurrent, tell=(lambda standing: None) if wait else None)
    return folder.id


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened in a run, such as the ``CellEnded`` of cell `cell`, which is None for the whole run's.

    `at` is in UTC, `mono` in seconds of the host's monotonic clock, for durations. `fields` are those that this `kind`
    has in the store. `sentence` is what the command line says of it, empty for kinds of which it says nothing.
    """

    kind: str
    at: datetime
    mono: float
    cell: int | None
    fields: Mapping[str, Any]
    sentence: str


class AttachedRun(Iterator[RunEvent]):
    """The events of a run, from its first one on, and its state as far as they were taken.

    Taking the next one waits for it. There is none after the last one of a run that is over, when no process of it is
    left; a run that was killed has no ``RunEnded``. Events of progress are only those from now on.
    Raises VmlabError, with one line, for a damaged store.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._events = watch(folder)
        self._timeline = RunTimeline()
        self._over = False

    def __next__(self) -> RunEvent:
        for event in self._events:
            if event is not None:
                self._timeline.apply(event)
                return _of(event, self._timeline.cells_planned)
        self._over = self._over or is_over(self._folder, STOP_SECONDS)
        raise StopIteration

    @property
    def id(self) -> str:
        """The run's id."""
        return self._folder.id

    @property
    def outcome(self) -> str:
        """``running``, and after the last event ``passed``, ``failed``, ``invalid`` or ``aborted``."""
        if self._timeline.ended is not None:
            return str(self._timeline.ended.outcome)
        return str(Outcome.ABORTED) if self._over else RUNNING

    @property
    def exit_code(self) -> int | None:
        """That of ``vmlab run``; None until it has ended, and for a run that was killed."""
        return None if self._timeline.ended is None else self._timeline.ended.exit_code

    @property
    def cell(self) -> int | None:
        """The number of the cell that runs; None between cells. Of a fleet's it is the newest."""
        cell = self._timeline.cell
        return None if cell is None or cell.ended is not None else cell.told.cell

    @property
    def phase(self) -> str | None:
        """The phase of that cell: ``provision``, ``prepare``, ``execute``, ``collect`` or ``clean up``."""
        cell = self._timeline.cell
        return None if cell is None or cell.phase is None else str(cell.phase.phase)

    @property
    def cells_ended(self) -> int:
        """How many cells have ended."""
        return sum(cell.ended is not None for cell in self._timeline.cells.values())

    @property
    def cells_planned(self) -> int:
        """How many cells it is to have, as it was planned last; 0 before it has begun."""
        return self._timeline.cells_planned


def attach_run(run: str | Run | None = None) -> AttachedRun:
    """Follow a run as ``vmlab attach`` does; None is the one under way, or where there is none the newest.

    It changes nothing, and the run goes on when nobody takes events any more. Raises VmlabError, with one line, for
    what names no run, and for None where several are under way.
    """
    return AttachedRun(run_meant(None if run is None else named(run), or_newest=True))


def _of(event: Event, cells: int) -> RunEvent:
    fields = asdict(event)
    said = event_sentence(event, cells)
    return RunEvent(
        kind=type(event).__name__,
        at=datetime.fromtimestamp(fields.pop("wall"), UTC),
        mono=fields.pop("mono"),
        cell=fields.pop("cell", None),
        fields=fields,
        sentence="" if said is None else said.text,
    )
