"""Whether the differences of a comparison lie beyond the bounds that a user set; see docs/statistics.md, "A gate"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vmlab.analysis.comparison import WALL_CLOCK, Comparison, Row
from vmlab.analysis.difference import Verdict, corrected_for
from vmlab.analysis.figure import MISSING, RUN_TIME, WALL_SECONDS
from vmlab.analysis.gate import Answer, Condition, State
from vmlab.model.errors import UsageError
from vmlab.model.run import Outcome

_MOST_NAMED = 12


def judge(comparison: Comparison, conditions: Sequence[Condition], *, strict: bool = False) -> Comparison:
    """The comparison with its gate: each condition at each row of its figure, for each candidate.

    A condition is met where the interval of the difference lies wholly beyond its bound. The interval is corrected
    for all figures of the row's family, or for all that the conditions ask about where these are more: so in 95 % of
    cases no condition is met that does not hold in truth. With `strict`, one that is merely possible, or of which
    nothing is known, fails too. A candidate whose workload failed where the baseline's passed fails in any case.

    Raises UsageError for a figure that no cell has.
    """
    asked = [(condition, *_figure(comparison, condition)) for condition in conditions]
    figures = {(workload, metric) for _, workload, metric in asked}
    rows = [row for row in comparison.rows if (row.workload, row.metric) in figures]
    compared = sum(found.verdict != Verdict.NOT_COMPARED for row in rows for found in row.differences)
    gate: list[Answer] = []
    for condition, *figure in asked:
        its_own = [row for row in rows if [row.workload, row.metric] == figure]
        for row in its_own:
            gate += _at_row(comparison, condition, row, compared)
        gate += _elsewhere(comparison, condition, *figure, measured=bool(its_own))
    fails = {State.MET: True, State.NOT_MET: False, State.POSSIBLE: strict, State.CANNOT_TELL: strict}
    judged = (replace(answer, fails=answer.fails or fails[answer.state]) for answer in gate)
    return replace(comparison, gate=tuple(judged))


def _figure(comparison: Comparison, condition: Condition) -> tuple[str, str]:
    """The workload and the metric that a condition names."""
    workload, _, metric = condition.figure.partition(".")
    metric = metric or (WALL_SECONDS if workload == WALL_CLOCK else RUN_TIME)
    metrics = list(dict.fromkeys(row.metric for row in comparison.rows if row.workload == workload))
    if workload not in (*comparison.workloads, WALL_CLOCK):
        raise UsageError(f"{condition.named}: no such workload; there are {_list([*comparison.workloads, WALL_CLOCK])}")
    if metrics and metric not in metrics:
        raise UsageError(f"{condition.named}: {workload} has no such figure; it has {_list(metrics)}")
    return workload, metric


def _list(names: Sequence[str]) -> str:
    return ", ".join([*names[:_MOST_NAMED], *(["…"] if len(names) > _MOST_NAMED else [])])


def _at_row(comparison: Comparison, condition: Condition, row: Row, compared: int) -> Iterator[Answer]:
    """The answer for each candidate at a row; `compared` is how many differences all conditions ask about."""
    for place, (label, found) in enumerate(zip(comparison.labels[1:], row.differences, strict=True), start=1):
        broken = row.figures[place].state == Outcome.FAILED and row.figures[0].comparable is not None
        if found.verdict == Verdict.NOT_COMPARED:
            because = _not_compared(comparison.labels, row, place)
        else:
            figures = max(compared, found.family)
            found = corrected_for(figures, row.figures[0], row.figures[place], found)
            because = "the baseline is 0" if found.percent is None else found.because
        state = condition.state(found.interval, found.noise or 0.0) if found.interval else State.CANNOT_TELL
        yield Answer(condition, row.workload, row.metric, row.axes, label, state, found, because, fails=broken)


def _not_compared(labels: Sequence[str], row: Row, place: int) -> str:
    """Which of two sides has no figure that passed, and what it is instead."""
    sides = [(labels[at], row.figures[at]) for at in (0, place)]
    words = [
        f"{label} {'has no such figure' if figure.state == MISSING else f'is {figure.state}'}"
        for label, figure in sides
        if figure.comparable is None
    ]
    return "; ".join(words)


def _elsewhere(
    comparison: Comparison, condition: Condition, workload: str, metric: str, *, measured: bool
) -> Iterator[Answer]:
    """That nothing can be told where a side has no cell, or no cell has any figure of the workload."""
    places = [(axes, f"no cell of {', '.join(without)} is there") for axes, without in comparison.alone]
    for axes, because in [*([] if measured else [({}, f"no cell has a figure of {workload}")]), *places]:
        for label in comparison.labels[1:]:
            yield Answer(condition, workload, metric, axes, label, State.CANNOT_TELL, because=because)
