"""What is right after a fault: rules that always hold, and the exit code that each fault should end with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.anomaly.injector import AWAITED, Fault
from tests.anomaly.lab import LIMIT_SECONDS, Seen
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
)
from vmlab.model.event import (
    Notice,
    RunEnded,
    RunStarted,
)

_CODES = {"passed": 0, "invalid": 4, "failed": 1}
_FORGIVEN = {
    *("hypervisor.guest-ping", "hypervisor.domain_stats", "hypervisor.cpu_use"),
    *("hypervisor.begin_latency", "hypervisor.disk_latency"),
    *("hypervisor.disk_requests", "hypervisor.guest-get-diskstats"),
    *("channel.close", "hypervisor.close"),
    *("shell.watch-launch", "channel.watch-send", "channel.watch-receive", "channel.watch-close"),
}
"""What is asked again: what a runner could not close, its launcher clears up. A guest that cannot be watched inside is
told."""


def problems(seen: Seen, untouched: Seen) -> list[str]:
    """Everything that is wrong after a run with a fault; `untouched` is the same run without one."""
    return [*_trouble(seen), *_order(seen), *_intact(seen), *_complete(seen, untouched), *_verdict(seen)]


def _trouble(seen: Seen) -> Iterator[str]:
    if seen.stuck:
        yield f"it did not end within {LIMIT_SECONDS:.0f} s:\n{seen.stuck}"
    if seen.crash:
        yield f"the launcher died:\n{seen.crash}"
    if seen.runner_crash:
        yield f"the runner died:\n{seen.runner_crash}"
    yield from (f"the event loop complains: {words}" for words in seen.complaints)
    yield from (f"left running or open: {left}" for left in seen.leftovers)
    yield from (f"left after clean: {left}" for left in seen.left_after_clean)
    if seen.left_in_journal and not _writes_nothing_more(seen) and (seen.last is None or seen.last.exit_code != 5):
        yield f"left behind, and not told: {seen.left_in_journal}"


def _writes_nothing_more(seen: Seen) -> bool:
    return seen.fault is not None and seen.fault.mode == "full" and seen.fired


def _order(seen: Seen) -> Iterator[str]:
    kinds = [type(event) for event in seen.events]
    if kinds and kinds[0] is not RunStarted and (RunStarted in kinds or set(kinds) - {RunEnded, Notice}):
        yield f"the first event is {kinds[0].__name__}"
    if kinds.count(RunEnded) > 1 or (RunEnded in kinds and kinds[-1] is not RunEnded):
        yield "the last word is not the last event, or there are several"
    if seen.last is None and not _writes_nothing_more(seen):
        yield f"there is no last word: {seen.unsaid}"
    started = [event.cell for event in seen.of(CellStarted)]
    ended = Counter(event.cell for event in seen.of(CellEnded))
    for cell in started:
        if ended[cell] != 1 and not (ended[cell] == 0 and _writes_nothing_more(seen)):
            yield f"cell {cell} began and ended {ended[cell]} times"
    yield from _order_in_cells(seen)


def _order_in_cells(seen: Seen) -> Iterator[str]:
    current: int | None = None
    phase: str | None = None
    told: set[tuple[int, str]] = set()
    for event in seen.events:
        cell = getattr(event, "cell", None)
        if isinstance(event, CellStarted):
            current = cell
        elif isinstance(event, CellEnded):
            if phase is not None and not _writes_nothing_more(seen):
                yield f"cell {cell} ended in phase {phase}"
            current = phase = None
        elif cell is not None and cell != current:
            yield f"{type(event).__name__} of cell {cell} came while cell {current} ran"
        if isinstance(event, PhaseStarted):
            if phase is not None:
                yield f"phase {event.phase} began in phase {phase}"
            phase = event.phase
        elif isinstance(event, PhaseEnded):
            if phase != event.phase:
                yield f"phase {event.phase} ended in phase {phase}"
            phase = None
        elif isinstance(event, WorkloadEnded):
            if (event.cell, event.workload) in told:
                yield f"workload {event.workload} of cell {event.cell} ended twice"
            told.add((event.cell, event.workload))


def _intact(seen: Seen) -> Iterator[str]:
    if seen.events[: len(seen.before)] != seen.before:
        yield "what was stored before the fault has changed"
    if seen.raw[: len(seen.raw_before)] != seen.raw_before:
        yield "raw output that was stored before the fault has changed"


def _complete(seen: Seen, untouched: Seen) -> Iterator[str]:
    """A cell that is called passed has every figure, proof and raw output of a passed cell."""
    for ended in seen.of(CellEnded):
        if ended.outcome == "passed":
            cell = ended.cell
            if len(seen.figures(cell)) != len(untouched.figures(cell)):
                yield f"cell {cell} passed with {len(seen.figures(cell))} figures of {len(untouched.figures(cell))}"
            kept = [sum(one == cell for one, _ in run.raw) for run in (seen, untouched)]
            if kept[0] != kept[1]:
                yield f"cell {cell} passed with {kept[0]} raw outputs of {kept[1]}"
        elif not ended.reasons:
            yield f"cell {ended.cell} is {ended.outcome} without a reason"


def _verdict(seen: Seen) -> Iterator[str]:
    last = seen.last
    if last is None:
        return
    cells = [event.outcome for event in seen.of(CellEnded)]
    if last.outcome == "passed" and cells != ["passed"] * 2:
        yield f"the run passed with cells that {cells}"
    refused = last.exit_code == 3 and last.outcome == "failed" and not seen.of(CellStarted)
    if last.outcome in _CODES and last.exit_code not in (_CODES[last.outcome], 5) and not refused:
        yield f"the run is {last.outcome} and exits with {last.exit_code}"
    if last.exit_code != 0 and not last.reason and not any(event.reasons for event in seen.of(CellEnded)):
        yield f"the run exits with {last.exit_code} and nothing says why"
    if last.exit_code not in (wanted := _wanted(seen)):
        why = [last.reason, *(reason for event in seen.of(CellEnded) for reason in event.reasons)]
        yield f"the run exits with {last.exit_code} ({last.outcome}: {'; '.join(why)}), not with {sorted(wanted)}"
    if seen.fault is not None and seen.fault.mode == "hang" and last.exit_code == 1:
        told = " ".join([last.reason, *(reason for event in seen.of(CellEnded) for reason in event.reasons)])
        if "within" not in told and "longer than" not in told:
            yield f"no deadline is named: {told}"


def _wanted(seen: Seen) -> set[int]:
    """The exit codes that are right after this fault."""
    fault = seen.fault
    if fault is None or not seen.fired:
        return {0}
    if fault.mode == "stop":
        return {0, 130} if not seen.stopped or len(seen.ended_before) == 2 else {130}
    if fault.family in AWAITED:
        return _of_a_call(seen, fault)
    # A moment's trouble with the store is waited out, once there is a runner.
    if fault.mode == "hang" or (fault.mode == "fail" and fault.family == "store" and _began(seen)):
        return {0}
    if _is_warm(seen):
        return {4}
    # What becomes of a file's trouble depends on whose file it is; that it is told is a rule of its own.
    return {0, 1, 5} if _began(seen) else {0, 1, 3, 5}


def _began(seen: Seen) -> bool:
    """Whether a cell had begun when the fault came."""
    return any(isinstance(event, CellStarted) for event in seen.before)


def _of_a_call(seen: Seen, fault: Fault) -> set[int]:
    if fault.point in _FORGIVEN or any("are restored once more" in one.text for one in seen.of(Notice)):
        return {0}
    return {4} if _is_warm(seen) else {1}


def _is_warm(seen: Seen) -> bool:
    """Whether caches were not emptied, which spoils what is measured afterwards, and nothing else."""
    return any("could not be emptied" in reason for ended in seen.of(CellEnded) for reason in ended.reasons)
