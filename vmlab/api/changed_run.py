"""What programs change of a run that goes on: as the command line does, over the run's socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from vmlab.api.opened_run import Run, named, open_run
from vmlab.lab.commands.forced_end import end_run
from vmlab.lab.commands.stopping import run_meant
from vmlab.lab.commands.verbs import ChangeComing, ChangeRunning, ListComing, coming_document
from vmlab.lab.process.host_recording import RecordingRequest, start_recording
from vmlab.lab.process.resuming import More
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.waiting_runs import demand_one_way
from vmlab.model.errors import UsageError
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
) -> str:
    """Begin to record this host and its own guests, as ``vmlab record --detach`` does; the run's id.

    It ends after `seconds`, or with `stop_run`. A sample is taken every `interval` seconds; the newest `keep_seconds`
    are kept, of at most `keep_bytes` on the disk. Raises VmlabError, with one line, for what makes no sense, and where
    the state folder cannot be written.
    """
    return start_recording(RecordingRequest(seconds, interval, keep_seconds, keep_bytes)).id


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
