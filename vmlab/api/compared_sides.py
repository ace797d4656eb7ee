"""A comparison for programs: what `vmlab compare` shows, a difference for each figure and candidate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vmlab.analysis.compared_runs import noise_of_run, sides_to_compare
from vmlab.analysis.comparison.compare import compare as compare_sides
from vmlab.analysis.comparison.comparison import Comparison as Compared
from vmlab.analysis.comparison.comparison import Row
from vmlab.analysis.comparison.gate import Condition
from vmlab.analysis.comparison.judging import gate_code, judge
from vmlab.api.opened_run import Run, frame_of, named
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import fields_of, jsonable, picked
from vmlab.model.visible import visible_values
from vmlab.report.exports.tidy import AXIS, Cell, Kind, Tidy, axis_values, kinds_of
from vmlab.report.headline import explanation
from vmlab.report.verdicts import sentence

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of a candidate against the baseline's, at one place of the axes.

    The means are in `unit`, None for a side of which nothing counts. `percent` is of the baseline, positive where the
    candidate is larger; `interval` has its ends in percent at `confidence` percent. `verdict` is ``difference
    proven``, where the interval excludes 0, ``no difference proven``, ``too few readings``, ``one reading each``,
    ``one a side`` or ``not compared``. `better` tells whether the candidate is the better one, None unless that is
    proven. `sentence` has all of that in words.
    """

    axes: Mapping[str, str | int | float | bool]
    workload: str
    metric: str
    unit: str
    candidate: str
    baseline_mean: float | None
    candidate_mean: float | None
    percent: float | None
    interval: tuple[float, float] | None
    confidence: float | None
    p_adjusted: float | None
    readings: int
    verdict: str
    better: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A baseline, its candidates, and a difference for each figure of each candidate.

    `accelerators` are those of the guests, ``kvm`` or ``tcg``, and `ordered` names parts of a host that were not its
    own, such as ``emulated disk``: whoever shows figures of these should say so.
    `warnings` has one line for everything that makes the comparison doubtful. `exit_code` is that of ``vmlab compare``:
    0, or with conditions 1 where one is met and 4 where one is undecided.
    """

    baseline: str
    candidates: tuple[str, ...]
    differences: tuple[Difference, ...]
    accelerators: tuple[str, ...]
    ordered: tuple[str, ...]
    warnings: tuple[str, ...]
    exit_code: int
    explanation: tuple[str, ...]
    """The paragraphs of ``vmlab compare --explain``, where it was asked for."""
    _found: Compared

    def document(self) -> dict[str, Any]:
        """What ``vmlab compare --json`` prints: the document ``vmlab.compare`` of docs/reference/json.md."""
        found: dict[str, Any] = jsonable(self._found)
        return found

    def junit(self) -> bytes:
        """The answers of its conditions as ``vmlab compare --junit`` writes them. Raises VmlabError without any."""
        if not self._found.gate:
            raise UsageError("fail_if names no condition, and JUnit XML has a case for each")
        # Imported late, as on the command line: no other comparison writes XML.
        from vmlab.report.exports.junit import junit_gate

        return junit_gate(self._found)

    def frame(self) -> polars.DataFrame:
        """A row for each difference, with a column for each axis, and one for each end of the interval."""
        axes = kinds_of([one.axes for one in self.differences])
        columns: dict[str, Kind] = {f"{AXIS}{name}": kind for name, kind in axes.items()}
        columns |= _COLUMNS
        rows: Iterator[tuple[Cell, ...]] = ((*axis_values(one.axes, axes), *_values(one)) for one in self.differences)
        return frame_of(Tidy(columns, rows))


_COLUMNS: dict[str, Kind] = {
    "workload": "text",
    "metric": "text",
    "unit": "text",
    "candidate": "text",
    "baseline_mean": "number",
    "candidate_mean": "number",
    "percent": "number",
    "interval_low": "number",
    "interval_high": "number",
    "confidence": "number",
    "p_adjusted": "number",
    "readings": "whole",
    "verdict": "text",
    "better": "flag",
}


def _values(one: Difference) -> tuple[Cell, ...]:
    low, high = one.interval or (None, None)
    known = {**fields_of(one), "interval_low": low, "interval_high": high}
    return tuple(known[name] for name in _COLUMNS)


def compare(
    *runs: str | Run,
    control: str | Run | None = None,
    fail_if: Sequence[str] = (),
    strict: bool = False,
    lenient: bool = False,
    explain: bool = False,
    baseline: str | Run | None = None,
    metric: Sequence[str] = (),
) -> Comparison:
    """Compare runs as ``vmlab compare`` does: with the first of them, or one run by the values of the axis it varies.

    Each is a `Run`, or a name as the command line takes it: also ``RUN:CELL``, and ``A,B`` for one side of two runs.
    `control` is a control run, whose noise no proven difference is within. `fail_if` are conditions such as
    ``web.latency_p95 > +20 %``; what is undecided counts as met when `strict`, and as not met when `lenient`. Bounds on
    levels, such as ``web > 20 s``, need one run alone, which is the `baseline` then, without `candidates`.
    With `explain` it has an `explanation`. `baseline` is the side to compare with, instead of the first; of one run a
    value of its axis. `metric` are the figures to compare, METRIC or WORKLOAD.METRIC, instead of those of the scenario.

    Raises VmlabError, with one line, for what names no run, for a run that is named twice, for runs without a common
    cell, and for a bad condition.
    """
    if not runs:
        raise UsageError("a comparison needs two runs or cells, or a run with an axis of two values")
    if isinstance(fail_if, str):
        raise UsageError("fail_if is a list of conditions")
    if isinstance(metric, str):
        raise UsageError("metric is a list of names of metrics")
    if strict and lenient:
        raise UsageError("strict and lenient exclude each other")
    conditions = [Condition.parse(text) for text in fail_if]
    noise = noise_of_run(None if control is None else named(control))
    first = None if baseline is None else named(baseline)
    sides = sides_to_compare([named(run) for run in runs], whole=explain, baseline=first)
    found = judge(compare_sides(sides, noise, metric, conditions), conditions, strict=strict)
    label, *candidates = found.labels
    differences = tuple(one for row in (*found.rows, *found.fixed) for one in _differences(found, row))
    code = int(gate_code(found, lenient=lenient))
    return Comparison(
        baseline=label,
        candidates=tuple(candidates),
        differences=differences,
        accelerators=tuple(dict.fromkeys(filter(None, found.accelerators))),
        ordered=found.ordered,
        warnings=found.warnings,
        exit_code=code,
        explanation=tuple(explanation(visible_values(found))) if explain else (),
        _found=found,
    )


def _differences(found: Compared, row: Row) -> Iterator[Difference]:
    baseline, *figures = row.figures
    for candidate, figure, one in zip(found.labels[1:], figures, row.differences, strict=True):
        yield Difference(
            **picked(row, "axes", "workload", "metric", "unit"),
            candidate=candidate,
            baseline_mean=baseline.mean,
            candidate_mean=figure.mean,
            **picked(one, "percent", "interval", "confidence", "p_adjusted", "readings", "better"),
            verdict=str(one.tested or one.verdict),
            sentence=sentence(one),
        )
