"""The answer of several runs as blocks: a line for each figure, and below it what each run shows by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from vmlab.analysis.comparison.overall import OVERALL
from vmlab.analysis.comparison.pooled import OwnDifference, PooledComparison, PooledRow, PooledRun
from vmlab.analysis.statistics.random_effects import ENOUGH_BLOCKS, LEAST_COVERAGE
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Column, Notes, Section, Table
from vmlab.report.comparison_text import EXPLORATORY, figure_name
from vmlab.report.heading import behind_notes, machine_parts
from vmlab.report.verdicts import UNTESTED
from vmlab.report.words import MARK, NOT_MEASURED, in_brackets, moment, plural, relative_number
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH

_LEGEND = (
    "in brackets: 95 % interval of the difference over all runs like these; another run: where another run of as many "
    "repeats shows it in 95 % of cases; spread: standard deviation between runs; Q: Cochran's test of no spread, with p"
)
_OVERALL = "overall: the geometric mean of the workloads, above 0 where the candidate is better"
_EACH = "each interval is at 95 %, and not corrected for the number of metrics"


def pooled_text(comparison: PooledComparison, width: int = WIDTH) -> str:
    """The answer as plain text of which no line is wider than `width`."""
    return "\n".join(text_lines(pooled_blocks(visible_values(comparison)), width)) + "\n"


def pooled_blocks(comparison: PooledComparison) -> Iterator[Block]:
    """What was pooled, a section for each place and candidate, the machines, and notes."""
    runs = comparison.runs
    yield Notes([f"{_what(runs)}, pooled; baseline: {comparison.baseline}"], tone="sub")
    for (place, candidate), rows in groupby(comparison.rows, key=lambda row: (axes_words(row.axes), row.candidate)):
        own = list(rows)
        title = f"{candidate} against {comparison.baseline}" + (f", {place}" if own[0].axes else "")
        yield Section(title, [_answers(own), Notes(list(_sentences(own))), _of_runs(own, runs)])
    yield Section("machines", [Notes(list(_machines(runs)))])
    accelerators = [one.accelerator for one in runs]
    notes = [_LEGEND] if any(row.effects for row in comparison.rows) else []
    notes += [_OVERALL] if any(row.workload == OVERALL for row in comparison.rows) else []
    notes += [_EACH] if len(comparison.rows) > 1 else []
    notes += _few_blocks(comparison.rows)
    notes += behind_notes(accelerators, comparison.ordered, "some of the runs")
    notes += [EXPLORATORY] if comparison.chosen else []
    yield Section("", [Notes([*notes, *(f"{MARK} {text}" for text in comparison.warnings)])])


def _what(runs: Sequence[PooledRun]) -> str:
    first, days = runs[0].run, sorted({_day(one) for one in runs})
    span = " to ".join(dict.fromkeys([days[0], days[-1]]))
    return f"{plural(len(runs), 'run')} of {first.scenario} at size {first.size}, {span}"


def _few_blocks(rows: Sequence[PooledRow]) -> Iterator[str]:
    least = min((own.blocks for row in rows if row.effects for own in row.of_runs), default=ENOUGH_BLOCKS)
    if least < ENOUGH_BLOCKS:
        yield (
            f"a run has {least} repeats that count: the interval of the difference then covers {LEAST_COVERAGE} % at "
            "the least, not 95 %"
        )


def _day(one: PooledRun) -> str:
    return moment(one.run.started)[: len("2026-11-21")] if one.run.started else "at an unknown time"


def _answers(rows: Sequence[PooledRow]) -> Table:
    columns = [
        Column("difference", [_estimate(row.percent, row.interval) or UNTESTED for row in rows]),
        Column("another run", [_ends(row.prediction) for row in rows]),
        Column("runs", [str(len(row.of_runs)) for row in rows]),
        Column("spread", [NOT_MEASURED if row.spread is None else f"{row.spread:.1f} %" for row in rows]),
        Column("Q (p)", [_q(row) for row in rows]),
    ]
    return Table("metric", [figure_name(row.workload, row.metric) for row in rows], columns)


def _estimate(percent: float | None, interval: tuple[float, float] | None) -> str:
    """A difference with its interval; empty where none is known."""
    return "" if percent is None else f"{relative_number(percent, 'difference')} {in_brackets(interval)}".rstrip()


def _ends(interval: tuple[float, float] | None) -> str:
    """``-48.0 to -38.0 %``."""
    if interval is None:
        return NOT_MEASURED
    low, high = (relative_number(end, "difference") for end in interval)
    return f"{low.removesuffix(' %')} to {high}"


def _q(row: PooledRow) -> str:
    return NOT_MEASURED if row.effects is None else f"{row.effects.q:.1f} ({row.effects.q_p:.2g})"


def _sentences(rows: Sequence[PooledRow]) -> Iterator[str]:
    told = [(figure_name(row.workload, row.metric), _ends(row.prediction)) for row in rows if row.prediction]
    if told:
        words = ", ".join(f"{name} {ends}" for name, ends in told) if len(rows) > 1 else told[0][1]
        yield f"Another run like these: {words}"
    yield from (f"{UNTESTED} {figure_name(row.workload, row.metric)}: {row.because}" for row in rows if row.because)


def _of_runs(rows: Sequence[PooledRow], runs: Sequence[PooledRun]) -> Table:
    columns = [Column(figure_name(row.workload, row.metric), _own_texts(row.of_runs, runs)) for row in rows]
    return Table("run by run", [one.run.id for one in runs], columns, wide=True)


def _own_texts(of_runs: Sequence[OwnDifference], runs: Sequence[PooledRun]) -> list[str]:
    known = {one.run: _estimate(one.percent, one.interval_percent) for one in of_runs}
    return [known.get(one.run.id) or NOT_MEASURED for one in runs]


def _machines(runs: Sequence[PooledRun]) -> Iterator[str]:
    """A line for each machine with the days of its runs."""
    machines = ((*filter(None, machine_parts(one.run)), one.accelerator or "bare metal") for one in runs)
    for machine, those in grouped(zip(map(" · ".join, machines), runs, strict=True)).items():
        days = ", ".join(dict.fromkeys(_day(one) for one in those))
        yield f"{machine}: {plural(len(those), 'run')}, {days}"
