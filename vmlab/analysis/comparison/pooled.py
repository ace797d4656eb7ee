"""The same comparison made by several runs, as one answer: on other days, on other hosts.

Within a run the sides are the values of the axis that it varies, and a run's own figure is the mean over its blocks of
the logarithm of candidate over baseline. Runs are random effects (`statistics.random_effects`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.conditions import Differing, differing
from vmlab.analysis.comparison.difference import Verdict
from vmlab.analysis.comparison.meetings import Place, Side, meetings_of, sides_by_axis, with_baseline
from vmlab.analysis.comparison.overall import OVERALL
from vmlab.analysis.figures.pairing import NO_COMMON_REPEAT, ONE_SNAPSHOT, Pairing, pairing_of
from vmlab.analysis.record.accelerators import accelerator_of
from vmlab.analysis.shape import RunDocument, RunPart
from vmlab.analysis.statistics.descriptive import CONFIDENCE, finite, mean, standard_deviation, student_t
from vmlab.analysis.statistics.random_effects import FEWEST_RUNS, RandomEffects, random_effects
from vmlab.analysis.tiles.throughput import TILE_INDEX
from vmlab.model.axes import axes_words
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.jsonable import INNER, picked
from vmlab.model.ordered import all_ordered_words
from vmlab.model.run import AxisValue

SCHEMA = "vmlab.pooled/1"
FEWEST_BLOCKS = 2
"""A run with fewer has no variance of its own."""
_NO_RATIO = "a value is 0 or below, and has no ratio"
_MAY_DIFFER = ("host", "accelerator", "seed", "image", "provision", "snapshot", "setting host")
"""What conditions begin with that days and hosts differ in; all others make it another question."""


@dataclass(frozen=True, slots=True)
class OwnDifference:
    """What one run shows by itself of a figure: a difference in percent, with Student's 95 % interval over `blocks`.

    `effect` is the mean of the logarithms of the ratios, and `variance` that of this mean.
    """

    run: str
    blocks: int
    percent: float | None
    interval_percent: tuple[float, float] | None
    effect: float = field(metadata=INNER)
    variance: float = field(metadata=INNER)

    @classmethod
    def of(cls, run: str, logarithms: Sequence[float]) -> OwnDifference:
        """That of a run with two blocks at least."""
        effect, blocks = mean(logarithms), len(logarithms)
        variance = standard_deviation(logarithms) ** 2 / blocks
        half = student_t(blocks - 1) * math.sqrt(variance)
        return cls(run, blocks, percent_of(effect), percents_of((effect - half, effect + half)), effect, variance)


@dataclass(frozen=True, slots=True)
class PooledRow:
    """One figure of one candidate over all runs; `effects` are in logarithms.

    `because` says why there is no answer; `effects` is None then, and `of_runs` has the runs that show the figure.
    """

    axes: dict[str, AxisValue]
    workload: str
    metric: str
    unit: str
    more_is_better: bool | None
    candidate: str
    of_runs: tuple[OwnDifference, ...] = ()
    effects: RandomEffects | None = None
    because: str = ""

    @property
    def percent(self) -> float | None:
        """The difference in percent of the baseline."""
        return percent_of(self.effects.mean) if self.effects else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference over all runs like these, in percent."""
        return percents_of(self.effects.interval()) if self.effects else None

    @property
    def prediction(self) -> tuple[float, float] | None:
        """Where another run like these, of as many blocks, shows the difference in 95 % of cases, in percent."""
        return percents_of(self.effects.prediction(self.effects.within)) if self.effects else None

    @property
    def spread(self) -> float | None:
        """The standard deviation between runs, in percent."""
        return percent_of(self.effects.tau) if self.effects else None

    def json_fields(self) -> dict[str, Any]:
        """The row as it stands in ``vmlab.pooled/1``."""
        own = self.effects
        return {
            **picked(self, "axes", "workload", "metric", "unit", "more_is_better", "candidate", "because", "percent"),
            "interval_percent": self.interval,
            "prediction_percent": self.prediction,
            "confidence_percent": 100 * CONFIDENCE,
            "runs": len(self.of_runs),
            "spread_percent": self.spread,
            "q": own.q if own else None,
            "q_p": own.q_p if own else None,
            "i2_percent": own.i2 if own else None,
            "of_runs": self.of_runs,
        }


@dataclass(frozen=True, slots=True)
class PooledRun:
    """A run of the answer, and the accelerator of its guests, None where only the host worked."""

    run: RunPart
    accelerator: str | None

    def json_fields(self) -> dict[str, Any]:
        """The run as it stands in ``vmlab.pooled/1``."""
        named = picked(self.run, "id", "scenario", "size", "started", "host", "note")
        return {**named, "accelerator": self.accelerator}


@dataclass(frozen=True, slots=True)
class PooledComparison:
    """The answer of several runs: the label of the baseline, those of the candidates, and a row for each figure.

    `differs` are the conditions in which runs differ, as days and hosts do. `chosen` are the figures that a user named.
    """

    baseline: str
    candidates: tuple[str, ...]
    runs: tuple[PooledRun, ...]
    rows: tuple[PooledRow, ...]
    warnings: tuple[str, ...]
    differs: tuple[Differing, ...]
    chosen: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        """INVALID where a figure has no answer."""
        return ExitCode.INVALID if any(row.because for row in self.rows) else ExitCode.PASSED

    @property
    def ordered(self) -> tuple[str, ...]:
        """The words for parts of a host that were not its own."""
        return all_ordered_words(one.run.host for one in self.runs)

    def json_fields(self) -> dict[str, Any]:
        """The document ``vmlab.pooled/1``."""
        return {
            "schema": SCHEMA,
            **picked(self, "baseline", "candidates", "runs"),
            "accelerators": [name for name in dict.fromkeys(one.accelerator for one in self.runs) if name],
            "ordered": self.ordered,
            **picked(self, "warnings", "differs", "chosen", "rows"),
        }


def percent_of(logarithm: float) -> float | None:
    """A ratio in percent more than 1; None where no float is that."""
    try:
        return finite(100 * math.expm1(logarithm))
    except OverflowError:
        return None


def percents_of(logarithms: tuple[float, float]) -> tuple[float, float] | None:
    """Both ends of an interval; None where no float is one of them."""
    low, high = map(percent_of, logarithms)
    return None if low is None or high is None else (low, high)


def pool(
    documents: Sequence[RunDocument], *, baseline: str | None = None, chosen: Sequence[str] = ()
) -> PooledComparison:
    """One answer of several runs of one scenario; `baseline` and `chosen` are as for a comparison.

    Raises UsageError for fewer than three runs, for a run that is named twice or varies no axis, and for runs of which
    more differs than day and host.
    """
    _demand_several(documents)
    sides = [_sides(document, baseline) for document in documents]
    first = sides[0]
    for other in sides[1:]:
        if other[0].label != first[0].label:
            words = f"run {first[0].run.id} compares with {first[0].label}, run {other[0].run.id} with {other[0].label}"
            raise UsageError(f"{words}: name the baseline with --baseline, or pool runs with one axis")
    differs = tuple(_demand_alike(documents))
    found = [compare(own, None, chosen) for own in sides]
    rows = tuple(_rows(found, [document.run.id for document in documents]))
    if not rows:
        raise UsageError("the runs have no metric in common")
    cells = [[cell for side in own for cell in side.cells] for own in sides]
    runs = [document.run for document in documents]
    return PooledComparison(
        baseline=first[0].label,
        candidates=tuple(dict.fromkeys(row.candidate for row in rows)),
        runs=tuple(PooledRun(run, accelerator_of(run, own)) for run, own in zip(runs, cells, strict=True)),
        rows=rows,
        warnings=tuple(_warnings(found, runs)),
        differs=differs,
        chosen=tuple(chosen),
    )


def _demand_several(documents: Sequence[RunDocument]) -> None:
    ids = [document.run.id for document in documents]
    if twice := next((run for run in ids if ids.count(run) > 1), None):
        raise UsageError(f"run {twice} is named twice; each counts once")
    if len(ids) < FEWEST_RUNS:
        raise UsageError(f"too few runs: a pooled answer takes three at least, not {', '.join(ids)} alone")


def _sides(document: RunDocument, baseline: str | None) -> list[Side]:
    sides = sides_by_axis(document)
    if len(sides) < 2:
        raise UsageError(f"run {document.run.id} varies no axis, so it has no difference to pool")
    return with_baseline(sides, baseline)


def _demand_alike(documents: Sequence[RunDocument]) -> Iterator[Differing]:
    """In what days and hosts differ. Raises UsageError where the runs do not measure the same."""
    sides = [Side.of(document.run.id, document) for document in documents]
    meetings = meetings_of(sides)
    if not meetings:
        raise UsageError("the runs have no cell with the same axes, so there is nothing to pool")
    for one in differing([side.run for side in sides], [(each.axes, each.of_runs) for each in meetings]):
        if not begins_with(one.what, _MAY_DIFFER):
            raise UsageError(f"these runs do not measure the same: {one.line([side.label for side in sides])}")
        yield one


def begins_with(what: str, names: Sequence[str]) -> bool:
    """Whether a condition is one of `names`, or a part of one: ``host kernel`` of ``host``."""
    return any(what == name or what.startswith((f"{name} ", f"{name}.")) for name in names)


_Key = tuple[Place, str, str, str, bool | None]


def _rows(found: Sequence[Comparison], runs: Sequence[str]) -> Iterator[PooledRow]:
    """A row for each figure that is asked for, at each place that all runs have, and each candidate."""
    by_key = [{_key(row): row for row in _asked(own)} for own in found]
    common = set.intersection(*({key[0] for key in own} for own in by_key))
    for key in dict.fromkeys(key for own in by_key for key in own if key[0] in common):
        place, workload, metric, unit, more = key
        for candidate in dict.fromkeys(label for own in found for label in own.labels[1:]):
            shown = PooledRow(dict(place), workload, metric, unit, more, candidate)
            known = zip(runs, found, by_key, strict=True)
            yield _pooled(shown, [_of_run(run, own, those.get(key), candidate) for run, own, those in known])


def _key(row: Row) -> _Key:
    return tuple(sorted(row.axes.items())), row.workload, row.metric, row.unit, row.more_is_better


def _asked(found: Comparison) -> Iterator[Row]:
    for row in found.judged:
        if row.metric != TILE_INDEX and (found.chosen or row.metric in found.asked or row.workload == OVERALL):
            yield row


def _pooled(row: PooledRow, own: Sequence[OwnDifference | str]) -> PooledRow:
    known = tuple(one for one in own if isinstance(one, OwnDifference))
    because = "; ".join(one for one in own if isinstance(one, str))
    effects = None if because else random_effects([one.effect for one in known], [one.variance for one in known])
    return replace(row, of_runs=known, effects=effects, because=because)


def _of_run(run: str, found: Comparison, row: Row | None, candidate: str) -> OwnDifference | str:
    """What a run shows of a figure, or why it shows nothing that could be pooled."""
    if row is None or candidate not in found.labels:
        return f"run {run} has no such metric" if row is None else f"run {run} has no {candidate}"
    place = found.labels.index(candidate)
    difference, pairing = row.differences[place - 1], pairing_of(row.figures[0], row.figures[place])
    if difference.verdict == Verdict.NOT_DELIVERED:
        return f"run {run}: {difference.verdict.words}: {difference.because}"
    if pairing is None:
        states = dict.fromkeys(row.figures[at].state for at in (0, place) if row.figures[at].comparable is None)
        return f"run {run}: a side is {' and '.join(states)}"
    blocks = 0 if pairing.obstacle == NO_COMMON_REPEAT else pairing.count
    if blocks < FEWEST_BLOCKS:
        counted = f"{blocks or 'no'} repeat{'' if blocks else 's'} in which both sides count"
        return f"run {run} has {counted}; its own spread takes {FEWEST_BLOCKS} at least"
    if min(*pairing.before, *pairing.after) <= 0:
        return f"run {run}: {_NO_RATIO}"
    return OwnDifference.of(run, _logarithms(pairing))


def _logarithms(pairing: Pairing) -> list[float]:
    return [math.log(after) - math.log(before) for before, after in zip(pairing.before, pairing.after, strict=True)]


def _warnings(found: Sequence[Comparison], runs: Sequence[RunPart]) -> Iterator[str]:
    for run, own in zip(runs, found, strict=True):
        for other in run.measured_beside:
            yield f"run {run.id}: run {other.run} of {other.user} measured on its host at the same time"
        for axes, _ in own.alone:
            yield f"run {run.id}: {axes_words(axes)} is left out, as a side has no cell there"
    frozen = [row for own in found for row in own.rows if _one_snapshot(row)]
    taken = {tuple(sorted(one.snapshots.items())) for row in frozen for one in row.figures[0].readings}
    if frozen and len(taken) < len(runs):
        yield (
            f"guests of all {len(runs)} runs began from {len(taken)} frozen memories a side: what differs from one "
            "freezing to the next is not in the spread between runs"
        )


def _one_snapshot(row: Row) -> bool:
    """Whether all repeats of each side begin from one snapshot, and those of the sides differ."""
    pairings = [pairing_of(row.figures[0], figure) for figure in row.figures[1:]]
    return any(one is not None and one.obstacle == ONE_SNAPSHOT for one in pairings)
