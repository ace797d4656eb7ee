"""One run against the last runs of its kind: whether tonight lies where another night like those lies.

Nights are random effects (`statistics.random_effects`) on the logarithms of a figure. A rank test of one night against
n needs n ≥ 39 to be at 5 %; the prediction interval takes the nights' means to be about normal, and three.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.conditions import differing
from vmlab.analysis.comparison.difference import Verdict
from vmlab.analysis.comparison.families import asked_metrics
from vmlab.analysis.comparison.meetings import Side, meetings_of, place_of
from vmlab.analysis.comparison.pooled import begins_with
from vmlab.analysis.figures.figure import Figure
from vmlab.analysis.shape import RunDocument, RunPart
from vmlab.analysis.statistics.descriptive import mean, standard_deviation
from vmlab.analysis.statistics.random_effects import FEWEST_RUNS, random_effects
from vmlab.analysis.statistics.sample_size import ALPHA
from vmlab.analysis.tiles.throughput import TILE_INDEX
from vmlab.model.axes import axes_words
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import picked
from vmlab.model.run import OF_HOST, AxisValue, Outcome
from vmlab.model.visible import quoted

SCHEMA = "vmlab.gate/1"
USUAL_NIGHTS = 10
_JUDGED = (Outcome.PASSED, Outcome.INCOMPLETE, Outcome.INVALID)
_OF_EVERY_NIGHT = ("seed", "provision", "snapshot")
"""In what nights of one kind may differ."""
_LABELS = ("nights", "tonight")


class NightState(StrEnum):
    """What is known of a figure of tonight."""

    WORSE = "worse"
    FAILED = "failed"
    WITHIN = "within"
    BETTER = "better"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class NightFigure:
    """One figure of tonight beside where another night like the last ones lies, in `unit`.

    `value` and `expected` are geometric means, of tonight's readings and over the `nights` that have the figure.
    `interval` is the prediction interval at `confidence` percent, for as many readings as tonight has. `because` says
    why there is none.
    """

    axes: dict[str, AxisValue]
    workload: str
    metric: str
    unit: str
    more_is_better: bool
    state: NightState = NightState.CANNOT_TELL
    value: float | None = None
    expected: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    nights: int = 0
    because: str = ""

    @property
    def fails(self) -> bool:
        """Whether the gate fails by it."""
        return self.state in (NightState.WORSE, NightState.FAILED)

    @property
    def fails_from(self) -> float | None:
        """From how many percent of what is expected on a night is worse; None where nothing is known."""
        if self.interval is None or self.expected is None:
            return None
        return 100 * (self.interval[0 if self.more_is_better else 1] / self.expected - 1)

    @property
    def undecided(self) -> bool:
        """Whether nothing is known of it."""
        return self.state == NightState.CANNOT_TELL

    def json_fields(self) -> dict[str, Any]:
        """The figure as it stands in ``vmlab.gate/1``."""
        return {
            **picked(self, "axes", "workload", "metric", "unit", "more_is_better"),
            **picked(self, "state", "value", "expected", "interval"),
            "confidence_percent": self.confidence,
            "fails_from_percent": self.fails_from,
            **picked(self, "nights", "fails", "because"),
        }


@dataclass(frozen=True, slots=True)
class NightGate:
    """Tonight's `run` against `nights`, those of the name `baseline` that count, the oldest first.

    `left_out` has the others of the last nights, each with why. `asked` is how many figures the gate asks about, over
    which it corrects. `kept` says under which name tonight was kept, empty for none.
    """

    run: RunPart
    baseline: str
    nights: tuple[RunPart, ...]
    left_out: tuple[tuple[str, str], ...]
    figures: tuple[NightFigure, ...]
    asked: int
    notes: tuple[str, ...] = ()
    kept: str = ""

    @property
    def learning(self) -> bool:
        """Whether there are too few nights for any answer."""
        return len(self.nights) < FEWEST_RUNS

    @property
    def fails(self) -> bool:
        """Whether tonight is worse than another night like the last ones is."""
        return any(one.fails for one in self.figures)

    @property
    def undecided(self) -> bool:
        """Whether a figure has no answer."""
        return any(one.undecided for one in self.figures)

    def exit_code(self, *, strict: bool = False, lenient: bool = False) -> ExitCode:
        """FAILED where it fails, INVALID where it is undecided: FAILED then with `strict`, PASSED with `lenient`."""
        if self.fails or (strict and self.undecided):
            return ExitCode.FAILED
        return ExitCode.INVALID if self.undecided and not lenient else ExitCode.PASSED

    def json_fields(self) -> dict[str, Any]:
        """The document ``vmlab.gate/1``."""
        return {
            "schema": SCHEMA,
            "run": self.run.id,
            **picked(self.run, "scenario", "size", "started"),
            "baseline": self.baseline,
            "nights": [{"run": one.id, "started": one.started} for one in self.nights],
            "nights_needed": FEWEST_RUNS,
            "left_out": [{"run": run, "because": because} for run, because in self.left_out],
            **picked(self, "asked", "fails", "undecided", "kept", "notes", "figures"),
        }


def judge_night(
    tonight: RunDocument,
    nights: Sequence[RunDocument],
    *,
    baseline: str,
    chosen: Sequence[str] = (),
    allowed: Sequence[str] = (),
    gone: Sequence[tuple[str, str]] = (),
) -> NightGate:
    """Whether tonight lies outside of where another of `nights`, the last ones with the name `baseline`, would lie.

    Figures are those that the scenario asks for, or that are `chosen`, at each place of the axes. A night that was
    measured under other conditions counts for nothing, unless these are `allowed`. `gone` are nights that cannot be
    read.

    Raises UsageError for a recording, for a run that was broken off, and for a figure that is not there or has no
    better end.
    """
    run = tonight.run
    if run.size == OF_HOST:
        raise UsageError(f"run {run.id} is a recording of the host, and no night to judge")
    if run.outcome not in (*_JUDGED, Outcome.FAILED):
        raise UsageError(f"run {run.id} is {run.outcome or 'not over'}, and no night to judge")
    side = Side.of(_LABELS[1], tonight)
    taken: list[Side] = []
    left_out = list(gone)
    for night in nights:
        if why := _why_unlike(night, side, allowed):
            left_out.append((night.run.id, why))
        else:
            taken.append(Side.of(night.run.id, night))
    # Without any night the rows are those of tonight alone.
    before = Side.of_runs(_LABELS[0], taken) if taken else replace(side, label=_LABELS[0])
    compared = compare([before, side], None, chosen)
    rows = [(row, _readings(row, taken)) for row in _asked(compared)]
    asked = max(1, sum(readings is not None for _, readings in rows))
    figures = [_judged(row, readings, asked, len(taken)) for row, readings in rows]
    return NightGate(
        run=run,
        baseline=baseline,
        nights=tuple(one.run for one in taken),
        left_out=tuple(left_out),
        figures=(*figures, *_missing(compared), *_unlike(compared, asked_metrics(run))),
        asked=asked,
        notes=tuple(_notes(taken, side)),
    )


def _why_unlike(night: RunDocument, tonight: Side, allowed: Sequence[str]) -> str:
    """Why a night is none of those that tonight is one of; empty where it is."""
    if night.run.outcome not in _JUDGED:
        return f"it is {night.run.outcome or 'not over'}"
    side = Side.of(night.run.id, night)
    places = {place_of(cell) for cell in side.cells}
    if lacking := next((place_of(cell) for cell in tonight.cells if place_of(cell) not in places), None):
        return f"it has no cell with {axes_words(dict(lacking))}"
    meetings = [(one.axes, one.of_runs) for one in meetings_of([side, tonight])]
    for one in differing([side.run, tonight.run], meetings):
        if not begins_with(one.what, (*_OF_EVERY_NIGHT, *allowed)):
            return one.line(["then", "tonight"])
    return ""


def _asked(found: Comparison) -> Iterator[Row]:
    """The rows of figures that the gate asks about. Raises UsageError for one that is named and has no better end."""
    any_asked = False
    for row in found.rows:
        if row.metric == TILE_INDEX or not (found.chosen or row.metric in found.asked):
            continue
        if row.more_is_better is not None:
            any_asked = True
            yield row
        elif found.chosen:
            raise UsageError(f"--metric {quoted(row.metric)}: neither end of it is better, so no night of it is worse")
    if not any_asked:
        raise UsageError("the scenario has no metric of which higher or lower is better; name some with --metric")


@dataclass(frozen=True, slots=True)
class _Readings:
    """The logarithms of tonight's readings, and those of each night that has any."""

    tonight: list[float]
    nights: list[list[float]]


def _readings(row: Row, nights: Sequence[Side]) -> _Readings | None:
    """What a row has; None where nothing follows from it."""
    tonight = row.figures[1]
    if tonight.comparable is None or not nights or row.figures[0].comparable is None:
        return None
    by_run = grouped((one.run, one.value) for one in row.figures[0].readings)
    values = [[one.value for one in tonight.readings], *by_run.values()]
    if len(by_run) < FEWEST_RUNS or min(map(min, values)) <= 0:
        return None
    logarithms = [[math.log(value) for value in own] for own in values]
    return _Readings(logarithms[0], logarithms[1:])


def _judged(row: Row, readings: _Readings | None, figures: int, nights: int) -> NightFigure:
    more = bool(row.more_is_better)
    shown = NightFigure(row.axes, row.workload, row.metric, row.unit, more, value=_geometric(row.figures[1]))
    if readings is None:
        failed = row.figures[1].state == Outcome.FAILED
        state = NightState.FAILED if failed else NightState.CANNOT_TELL
        return replace(shown, state=state, because=_why_unknown(row, nights))
    effects = [mean(own) for own in readings.nights]
    # One variance of all nights: that of a few readings of one night is too uncertain to weigh it by.
    variance = _within(readings.nights)
    found = random_effects(effects, [variance / len(own) for own in readings.nights])
    confidence = 1 - ALPHA / figures
    low, high = found.prediction(variance / len(readings.tonight), confidence)
    value = mean(readings.tonight)
    beyond = NightState.WITHIN
    if not low <= value <= high:
        beyond = NightState.BETTER if (value > high) == more else NightState.WORSE
    return replace(
        shown,
        state=beyond,
        expected=math.exp(found.mean),
        interval=(math.exp(low), math.exp(high)),
        confidence=100 * confidence,
        nights=len(effects),
    )


def _within(nights: Sequence[Sequence[float]]) -> float:
    """The variance of readings within a night, over all of them; 0 where each night has one reading."""
    freedom = sum(len(own) - 1 for own in nights)
    squares = [(len(own) - 1) * standard_deviation(own) ** 2 for own in nights if len(own) > 1]
    return math.fsum(squares) / freedom if freedom else 0.0


def _geometric(figure: Figure) -> float | None:
    values = [one.value for one in figure.readings] if figure.comparable else []
    return math.exp(mean([math.log(one) for one in values])) if values and min(values) > 0 else None


def _why_unknown(row: Row, nights: int) -> str:
    (before, tonight), (difference,) = row.figures, row.differences
    if difference.verdict == Verdict.NOT_DELIVERED:
        return f"{difference.verdict.words}: {difference.because}"
    if tonight.comparable is None:
        return f"tonight it is {tonight.state}"
    having = len({one.run for one in before.readings}) if nights and before.comparable else 0
    if having < FEWEST_RUNS:
        return f"{having} of the {FEWEST_RUNS} nights that an answer takes"
    return "a value is 0 or below, and has no logarithm"


def _missing(found: Comparison) -> Iterator[NightFigure]:
    """The places at which only the nights have cells."""
    for axes, without in found.alone:
        if _LABELS[1] in without:
            yield NightFigure(axes, "every workload", "", "1", False, because="tonight has no cell there")


def _unlike(found: Comparison, asked: Collection[str]) -> Iterator[NightFigure]:
    """The figures that the scenario asks for and that meant something else on earlier nights."""
    for (workload, metric), line in found.unlike.items():
        if metric in asked:
            yield NightFigure({}, workload, metric, "1", False, because=line)


def _notes(nights: Sequence[Side], tonight: Side) -> Iterator[str]:
    for other in tonight.run.measured_beside:
        yield f"run {other.run} of {other.user} measured on the host at the same time"
    taken, own = [_snapshots(side) for side in nights], _snapshots(tonight)
    if own and taken and all(one and not one & own for one in taken):
        yield "tonight's guests began from other snapshots than those of all nights, which may make a difference"


def _snapshots(side: Side) -> set[str]:
    return {digest for cell in side.cells for digest in cell.provision.snapshots.values()}
