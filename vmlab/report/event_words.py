"""Events in sentences for people, for both the progress on the command line and the console's log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.cell_event import (
    CacheProved,
    CacheSwitched,
    CellEnded,
    CellStarted,
    FiguresRemade,
    GuestStateChanged,
    KsmSwitched,
    LeverProved,
    NetworkProved,
    PhaseEnded,
    PhaseStarted,
    RoundEnded,
    TilesChanged,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.event import (
    AnotherRunSeen,
    CellWithdrawn,
    CommandReceived,
    DomainsSeen,
    Event,
    HostJoined,
    HostLeftOut,
    HostProbed,
    ImageReady,
    MeasuredAgain,
    Notice,
    RepeatsAdded,
    RunEnded,
    RunnerFinished,
    RunStarted,
    TogetherEnded,
)
from vmlab.model.ordered import ordered_sentences
from vmlab.model.quantities import format_seconds
from vmlab.model.run import EMULATED, OF_HOST, Outcome
from vmlab.report.run.loop_text import round_words
from vmlab.report.words import host_words, network_words, plural, switch_words, tiles_words

_LEVELS: dict[str, str] = {
    Outcome.PASSED: "good",
    Outcome.INCOMPLETE: "warning",
    Outcome.INVALID: "warning",
    Outcome.FAILED: "error",
    Outcome.ABORTED: "error",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """An event as a sentence. `level` is ``info``, ``good``, ``warning`` or ``error``."""

    level: str
    text: str


def event_sentence(event: Event, cells: int | None = None) -> Sentence | None:
    """The sentence for `event`; None for those that are shown in other ways.

    A cell's number is given as one of `cells`, where that is known.
    """
    match event:
        case RunStarted() if event.size == OF_HOST:
            return _info(f"recording {event.run} began")
        case HostProbed(accelerator=""):
            return None
        case DomainsSeen():
            names = ", ".join(domain.name for domain in event.domains)
            return _info(f"guests of the host: {names}" if names else "no guest of the host's own runs")
        case RunStarted():
            what = f"{event.scenario}, control run" if event.control else event.scenario
            return _info(f"run {event.run} started: {what}, size {event.size}, {plural(event.cells, 'cell')}")
        case HostProbed():
            emulated = ": guests' values describe emulation" if event.accelerator == EMULATED else ""
            return _info("; ".join([f"accelerator {event.accelerator}{emulated}", *ordered_sentences(event.host)]))
        case HostJoined():
            off = f"its clock {event.offset_ms:+.1f} ms ± {event.uncertainty_ms:.1f} ms"
            return _info(f"host {event.name} joined: {event.facts.get('cpu', 'unknown CPU')}, {off}")
        case HostLeftOut():
            return Sentence("error", f"host {event.name} is left out: {event.reason}")
        case ImageReady():
            return _info(f"image {event.image} {event.how} in {format_seconds(event.seconds)}")
        case Notice():
            return Sentence(event.level, event.text)
        case RepeatsAdded():
            return _info(f"the run goes on, up to {plural(event.repeats, 'repeat')}")
        case AnotherRunSeen():
            return Sentence("warning", f"run {event.run} of {event.user} measures on this host at the same time")
        case CommandReceived():
            return Sentence("warning", f"{event.origin} asked: {event.command}")
        case RunnerFinished():
            return _info("the runner has finished; its guests are cleared away")
        case RunEnded():
            return _ended(event.outcome, f"run {event.outcome}", event.reason)
        case _:
            return _of_a_cell(event, cells)


def like(one: Event, other: Event) -> bool:
    """Whether one sentence can say both: workloads of a cell that start, guests that come to the same state."""
    match one, other:
        case WorkloadStarted(), WorkloadStarted():
            return one.cell == other.cell and one.round == other.round == 1
        case GuestStateChanged(), GuestStateChanged():
            return one.state == other.state
        case _:
            return False


def events_sentence(events: Sequence[Event]) -> Sentence | None:
    """The sentence for events that are all `like` the first."""
    first, last = events[0], events[-1]
    if len(events) == 1:
        return event_sentence(first)
    within = f"within {(last.mono - first.mono) * 1e3:.0f} ms"
    if isinstance(last, GuestStateChanged):
        return _info(f"{len(events)} guests are {last.state}, {within}")
    late = max(one.late_ms for one in events if isinstance(one, WorkloadStarted))
    return _info(f"{len(events)} workloads started {within}, {late:.1f} ms late at most")


def _together(event: TogetherEnded) -> Sentence:
    skew = "" if event.skew_ms is None else f", started {event.skew_ms:.1f} ms apart"
    cells = ", ".join(map(str, event.cells))
    return _ended(event.outcome, f"cells {cells} of all hosts together: {event.outcome}{skew}", event.reason)


def _of_a_cell(event: Event, cells: int | None) -> Sentence | None:
    match event:
        case CellStarted():
            number = f"{event.cell}" if cells is None else f"{event.cell}/{cells}"
            host = host_words(event.settings.get("host", {}))
            under = f"; host: {host}" if host else ""
            return _info(f"cell {number} started: {axes_words(event.axes)}, {repeat_words(event.repeat)}{under}")
        case MeasuredAgain():
            return _info(f"cell {event.cell} measures cell {event.again_of} again")
        case TogetherEnded():
            return _together(event)
        case CellWithdrawn():
            where = f" on {event.name}" if event.name else ""
            return Sentence("warning", f"cell {event.cell} broke off{where}: {event.reason}")
        case PhaseStarted():
            return _info(f"{event.phase} began")
        case PhaseEnded():
            return _info(f"{event.phase} took {format_seconds(event.seconds)}")
        case GuestStateChanged():
            return _info(f"tile {event.tile} {event.guest} is {event.state}")
        case CacheProved(proof=proof) if not proof.agrees:
            return Sentence("error", f"{proof.guest}: {proof.file} is not in cache mode {proof.expected}")
        case LeverProved(proof=lever) if not lever.agrees:
            return Sentence("error", f"{lever.guest}: {lever.lever} is {lever.found}, not {lever.expected}")
        case NetworkProved() if not event.proof.agrees:
            return Sentence("error", f"cell {event.cell}: {network_words(event.proof)}")
        case CacheSwitched() | KsmSwitched():
            told = switch_words({"what": event.what, **asdict(event)})
            return Sentence("warning", f"cell {event.cell} was switched: {told}")
        case TilesChanged():
            return Sentence("warning", f"cell {event.cell}: {tiles_words(event.before, event.after)}")
        case WorkloadStarted() if event.round > 1:
            return None
        case WorkloadStarted():
            return _info(f"tile {event.tile} {event.workload} started on {event.guest}, {event.late_ms:.1f} ms late")
        case RoundEnded():
            return _ended(event.outcome, round_words(event), event.reason)
        case WorkloadEnded():
            took = format_seconds(event.seconds)
            text = f"tile {event.tile} {event.workload} {event.outcome} after {took}"
            return _ended(event.outcome, text, event.reason)
        case FiguresRemade():
            return _info(f"values of tile {event.tile} {event.workload} were made again by vmlab {event.version}")
        case CellEnded():
            return _ended(event.outcome, f"cell {event.cell} {event.outcome}", "; ".join(event.reasons))
        case _:
            return None


def _info(text: str) -> Sentence:
    return Sentence("info", text)


def _ended(outcome: str, text: str, reason: str) -> Sentence:
    return Sentence(_LEVELS.get(outcome, "info"), f"{text}: {reason}" if reason else text)
