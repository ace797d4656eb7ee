"""Whether differences of a comparison lie beyond bounds that a user set; docs/explanation/statistics.md, "A gate"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from vmlab.analysis.comparison.comparison import INDEX, Comparison, Row
from vmlab.analysis.comparison.difference import Verdict, corrected_for, readings_to_decide
from vmlab.analysis.comparison.gate import Answer, Condition, Level, State
from vmlab.analysis.comparison.overall import OVERALL
from vmlab.analysis.figures.figure import MISSING, WALL_CLOCK, WALL_SECONDS, Figure
from vmlab.analysis.figures.undelivered import undelivered_words
from vmlab.analysis.statistics.descriptive import mean, standard_deviation
from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.statistics.sample_size import ALPHA, readings_needed, readings_to_find
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.grouping import grouped
from vmlab.model.run import RUN_TIME, Outcome

_MOST_NAMED = 12
_T = TypeVar("_T")


def judge(comparison: Comparison, conditions: Sequence[Condition], *, strict: bool = False) -> Comparison:
    """The comparison with its gate: each condition at each row of its figure, for each candidate.

    A condition is met where the interval of the difference, or of the candidate's own level, lies wholly beyond its
    bound; of one side alone it is that side's level. The interval is corrected for all that the conditions ask about,
    each figure at each place once, and for nothing else: so in 95 % of cases no condition is met that does not hold in
    truth. With `strict`, one that is merely possible, or of which nothing is known, fails too. A candidate whose
    workload failed where the baseline's passed fails in any case, and for a bound on its level wherever it failed.

    Raises UsageError for a figure that no cell has, and for a bound in another unit than its figure.
    """
    asked = [(condition, *_figure(comparison, condition)) for condition in dict.fromkeys(conditions)]
    differing = _rows(comparison, [figure for condition, *figure in asked if not condition.level])
    levels = _rows(comparison, [figure for condition, *figure in asked if condition.level])
    compared = sum(found.is_compared for row in differing for found in row.differences)
    compared += sum(figure.comparable is not None for row in levels for figure in _bounded(row.figures))
    gate: list[Answer] = []
    for condition, *figure in asked:
        its_own = _rows(comparison, [figure])
        for row in its_own:
            judged_row = _at_level if condition.level else _at_row
            gate += judged_row(comparison, condition, row, compared)
        gate += _elsewhere(comparison, condition, *figure, measured=bool(its_own))
    fails = {State.MET: True, State.NOT_MET: False, State.POSSIBLE: strict, State.CANNOT_TELL: strict}
    judged = (replace(answer, fails=answer.fails or fails[answer.state]) for answer in gate)
    return replace(comparison, gate=tuple(judged))


def gate_code(comparison: Comparison, *, lenient: bool = False) -> ExitCode:
    """The exit code that the gate of a comparison gives; `lenient` where what is undecided passes."""
    if any(answer.fails for answer in comparison.gate):
        return ExitCode.FAILED
    undecided = not lenient and any(answer.undecided for answer in comparison.gate)
    return ExitCode.INVALID if undecided else ExitCode.PASSED


def _rows(comparison: Comparison, figures: Sequence[Sequence[str]]) -> list[Row]:
    """The rows of figures, each a workload and a metric."""
    return [row for row in comparison.judged if [row.workload, row.metric] in figures]


def _figure(comparison: Comparison, condition: Condition) -> tuple[str, str]:
    """The workload and the metric that a condition names. Raises UsageError for one that is `unlike`."""
    known = [*((row.workload, row.metric) for row in comparison.judged), *comparison.unlike]
    found = figure_of_condition(condition, known, comparison.timed, comparison.workloads)
    if line := comparison.unlike.get(found):
        raise UsageError(f"{condition.named}: {line}")
    return found


def figure_of_condition(
    condition: Condition,
    known: Sequence[tuple[str, str]],
    timed: Mapping[str, str],
    workloads: Sequence[str] = (),
) -> tuple[str, str]:
    """The workload and the metric that a condition names, of those that are `known`.

    A metric that one workload alone has needs no workload. `workloads` may have more names, of workloads without any
    figure; `timed` is as `Comparison.timed`. Raises UsageError for any other figure, and for the run time of a workload
    of fixed duration.
    """
    workload, _, metric = condition.figure.partition(".")
    if not metric and workload not in (WALL_CLOCK, *workloads, *(of for of, _ in known), *timed):
        workload, metric = _owner(condition, known, timed), workload
    metric = metric or (WALL_SECONDS if workload == WALL_CLOCK else RUN_TIME)
    if condition.figure == OVERALL and (OVERALL, OVERALL) in known and OVERALL not in workloads:
        if condition.level:
            raise UsageError(f"{condition.named}: the overall value is a ratio to the baseline; say overall < -10 %")
        return OVERALL, OVERALL
    if workload in timed and metric in (RUN_TIME, WALL_SECONDS):
        raise UsageError(f"{condition.named}: {_fixed_words(condition, workload, timed)}")
    metrics = list(dict.fromkeys(one for of, one in known if of == workload and one != OVERALL))
    of_workloads = (of for of, one in known if of not in (WALL_CLOCK, INDEX) and one != OVERALL)
    names = list(dict.fromkeys([*workloads, *of_workloads]))
    if workload not in (*names, WALL_CLOCK, *([INDEX] if metrics else [])):
        raise UsageError(f"{condition.named}: no such workload; there are {_list([*names, WALL_CLOCK])}")
    if metrics and metric not in metrics:
        raise UsageError(f"{condition.named}: {workload} has no such metric; it has {_list(metrics)}")
    return workload, metric


def _owner(condition: Condition, known: Sequence[tuple[str, str]], timed: Mapping[str, str]) -> str:
    """The workload of a figure that is named by its metric alone; that name where none has it.

    Raises UsageError, with what may be meant, where several have it.
    """
    name = condition.figure
    of_time = [of for of in timed if name == (WALL_SECONDS if of == WALL_CLOCK else RUN_TIME)]
    owners = list(dict.fromkeys(of for of, one in known if one == name != OVERALL)) or of_time
    if len(owners) > 1:
        meant = _list([f"{of}.{name}" for of in owners])
        raise UsageError(f"{condition.named}: several workloads have this metric; say one of {meant}")
    return owners[0] if owners else name


def _fixed_words(condition: Condition, workload: str, timed: Mapping[str, str]) -> str:
    if workload == WALL_CLOCK:
        return "all workloads work for a fixed time, so the total wall clock is no result; name a workload's throughput"
    rate = timed[workload]
    if condition.level or not rate or rate == RUN_TIME:
        return f"{workload} works for a fixed time, so its run time is no result; name another metric of it"
    bound = f"{-condition.percent:+g}" if condition.percent else "0"
    return (
        f"{workload} works for a fixed time, so its run time is no result; name its throughput, with the other sign: "
        f"'{workload}.{rate} {'<' if condition.above else '>'} {bound} %'"
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join([*names[:_MOST_NAMED], *(["…"] if len(names) > _MOST_NAMED else [])])


def _at_row(comparison: Comparison, condition: Condition, row: Row, compared: int) -> Iterator[Answer]:
    """The answer for each candidate at a row; `compared` is how many differences all conditions ask about."""
    for place, (label, found) in enumerate(zip(comparison.labels[1:], row.differences, strict=True), start=1):
        broken = row.figures[place].state == Outcome.FAILED and row.figures[0].measured is not None
        if found.verdict == Verdict.NOT_COMPARED:
            because = _not_compared(comparison.labels, row, place)
        elif found.verdict == Verdict.NOT_DELIVERED:
            because = f"{found.verdict.words}: {found.because}"
        elif found.verdict == Verdict.SAME:
            # Nothing is to be corrected: no chance and no noise is in it.
            found, because = replace(found, noise=None, interval=(0.0, 0.0)), ""
        else:
            found = corrected_for(compared, row.figures[0], row.figures[place], found)
            because = "the baseline is 0" if found.percent is None else found.because
        noise = found.noise or 0.0
        state = condition.state(found.interval, noise) if found.interval else State.CANNOT_TELL
        to_decide = (
            readings_to_decide(found.family, row.figures[0], row.figures[place], condition.percent, noise)
            if state == State.POSSIBLE
            else None
        )
        place_of = (condition, row.workload, row.metric, row.axes, label)
        yield Answer(*place_of, state, found, because, fails=broken, to_decide=to_decide)


def _at_level(comparison: Comparison, condition: Condition, row: Row, compared: int) -> Iterator[Answer]:
    """The answer for each candidate of a row by its own figure, whatever the baseline's is."""
    bound = condition.bound_in(row.unit, row.more_is_better)
    for label, figure in zip(_bounded(comparison.labels), _bounded(row.figures), strict=True):
        place_of = (condition, row.workload, row.metric, row.axes, label)
        if figure.comparable is None:
            levers = undelivered_words(figure.undelivered)
            words = f"{Verdict.NOT_DELIVERED}: {levers}" if levers else _state_words(label, figure)
            fails = figure.state == Outcome.FAILED
            yield Answer(*place_of, State.CANNOT_TELL, because=words, fails=fails)
            continue
        level = level_of(figure, bound, row.unit, max(1, compared))
        state = condition.state_of_level(level.interval, bound) if level.interval else State.CANNOT_TELL
        to_decide = None
        if state == State.POSSIBLE and (deviation := standard_deviation(level_readings(figure))) > 0:
            found = readings_to_find(abs(level.estimate - bound) / deviation, level.figures * figure.level_divisor)
            to_decide = None if found is None else max(found, level.readings + 1)
        yield Answer(*place_of, state, level=level, to_decide=to_decide)


def _bounded(of_sides: Sequence[_T]) -> Sequence[_T]:
    """Those of the candidates, whose levels conditions are about, or of the only side."""
    return of_sides[1:] or of_sides


def level_of(figure: Figure, bound: float, unit: str, figures: int) -> Level:
    """How large a figure with at least one reading is by itself, against a bound in its own `unit`.

    Its interval is at 1 - 5 % / `figures` (Bonferroni), of so many that are asked about, and nearer
    to 1 where repeats were added to its run.
    """
    readings = level_readings(figure)
    test, divided = signed_rank(readings), figures * figure.level_divisor
    interval = test.interval(ALPHA / divided)
    return Level(
        bound=bound,
        unit=unit,
        estimate=test.estimate,
        interval=interval,
        confidence=100 * (1 - ALPHA / divided) if interval else None,
        readings=len(readings),
        figures=figures,
        needed=readings_needed(divided),
        runs=len({one.run for one in figure.readings}) > 1,
    )


def level_readings(figure: Figure) -> list[float]:
    """The readings of a figure by itself: its repeats, or of several runs the mean of each."""
    by_run = grouped((one.run, one.value) for one in figure.readings)
    return [mean(those) for those in by_run.values()] if len(by_run) > 1 else [one.value for one in figure.readings]


def _not_compared(labels: Sequence[str], row: Row, place: int) -> str:
    """Which of two sides has no figure that passed, and what it is instead."""
    sides = [(labels[at], row.figures[at]) for at in (0, place)]
    return "; ".join(_state_words(label, figure) for label, figure in sides if figure.comparable is None)


def _state_words(label: str, figure: Figure) -> str:
    return f"{label} {'has no such metric' if figure.state == MISSING else f'is {figure.state}'}"


def _elsewhere(
    comparison: Comparison, condition: Condition, workload: str, metric: str, *, measured: bool
) -> Iterator[Answer]:
    """That nothing is known where a side has no cell, or no cell has any figure of the workload."""
    places = [(axes, f"no cell of {', '.join(without)} is there") for axes, without in comparison.alone]
    for axes, because in [*([] if measured else [({}, f"no cell has a metric of {workload}")]), *places]:
        for label in _bounded(comparison.labels):
            yield Answer(condition, workload, metric, axes, label, State.CANNOT_TELL, because=because)
