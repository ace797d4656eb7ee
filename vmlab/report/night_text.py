"""A night of a gate in words: a line for each figure, and what it was held against."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.comparison.nights import NightFigure, NightGate, NightState
from vmlab.analysis.statistics.random_effects import FEWEST_RUNS
from vmlab.analysis.statistics.sample_size import ALPHA
from vmlab.model.axes import axes_words
from vmlab.model.quantities import written
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Notes, Section
from vmlab.report.comparison_text import figure_name
from vmlab.report.figures import value_text
from vmlab.report.gate_text import FAILS, overall_words
from vmlab.report.verdicts import UNTESTED
from vmlab.report.words import MARK, moment, plural, relative_number
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH

_MOST_LEFT_OUT = 8


def night_text(gate: NightGate, width: int = WIDTH) -> str:
    """The verdict on tonight, each of its figures, and the nights, as text of which no line is wider than `width`."""
    gate = visible_values(gate)
    marks = [FAILS if one.fails else UNTESTED if one.undecided else "ok" for one in gate.figures]
    lines = [f"{mark:<{len(FAILS)}}  {line}" for mark, line in zip(marks, figure_lines(gate), strict=True)]
    title = f"gate {gate.baseline}: {overall(gate)}"
    blocks = [Section(title, [Notes(lines, indent="      "), Notes(list(night_notes(gate)))])]
    return "\n".join(text_lines(blocks, width)) + "\n"


def overall(gate: NightGate) -> str:
    """How it ended."""
    if gate.learning and not gate.fails:
        return f"no baseline yet, {len(gate.nights)} of the {FEWEST_RUNS} nights that it takes"
    return overall_words(gate.figures, "metric")


def figure_lines(gate: NightGate) -> list[str]:
    """Each figure as one line: what tonight shows, and where another night lies."""
    return [f"{place_name(one)}: {_known(one)}" for one in gate.figures]


def place_name(one: NightFigure) -> str:
    """``cache none: web latency_p95``."""
    name = figure_name(one.workload, one.metric) if one.metric else one.workload
    return f"{axes_words(one.axes)}: {name}" if one.axes else name


def _known(one: NightFigure) -> str:
    value = "" if one.value is None else _words([one.value], one.unit)[0]
    if one.interval is None:
        return ", ".join(filter(None, [value, str(one.state), one.because]))
    low, high, expected = _words([*one.interval, one.expected or 0.0], one.unit)
    where = f"another of {plural(one.nights, 'night')} lies from {low} to {high} at {one.confidence:.4g} %"
    word = f"{one.state} than that" if one.state in (NightState.WORSE, NightState.BETTER) else "within that"
    worse = "" if one.fails_from is None else f"; worse means {relative_number(one.fails_from, 'difference')} or more"
    return f"{value}, {word}: {where}, mean {expected}{worse}"


def _words(values: Sequence[float], unit: str) -> list[str]:
    form = written(unit, list(values))
    return [f"{value_text(value, unit, form=form)} {form.unit}".rstrip() for value in values]


def night_notes(gate: NightGate) -> list[str]:
    """The nights, those that do not count, over what is corrected, and what became of tonight."""
    days = dict.fromkeys(moment(one.started) for one in [*gate.nights[:1], *gate.nights[-1:]])
    notes = [", ".join(filter(None, [f"nights: {len(gate.nights)}", " to ".join(days)]))]
    if gate.asked > 1:
        level = 100 * ALPHA / gate.asked
        notes.append(f"corrected for {gate.asked} metrics: each interval is at {100 - level:.4g} %")
    notes += [f"{MARK} run {run} does not count: {because}" for run, because in gate.left_out[:_MOST_LEFT_OUT]]
    if (more := len(gate.left_out) - _MOST_LEFT_OUT) > 0:
        notes.append(f"{MARK} {plural(more, 'further run')} of the last ones: not counted either")
    notes += [f"{MARK} {text}" for text in gate.notes]
    if gate.kept:
        notes.append(f"run {gate.run.id} is kept as a night of {gate.kept}")
    else:
        again = f"`vmlab gate --run {gate.run.id} --baseline {gate.baseline} --accept` takes it in"
        notes.append(f"run {gate.run.id} is no night of {gate.baseline}; {again}")
    return notes
