"""The gate of a comparison in words: a line for each condition at each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.gate import Answer, Level, State
from vmlab.analysis.statistics.sample_size import MOST, readings_needed
from vmlab.model.axes import axes_words
from vmlab.model.quantities import written
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Notes, Section
from vmlab.report.figures import value_text
from vmlab.report.verdicts import UNPROVEN, UNTESTED, estimate_words, untested_words
from vmlab.report.words import plural
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH

if TYPE_CHECKING:
    from vmlab.analysis.comparison.nights import NightFigure

FAILS = "FAIL"
"""Stands before what a gate fails by."""
_MARKS = {State.NOT_MET: "ok", State.POSSIBLE: UNPROVEN, State.CANNOT_TELL: UNTESTED}
"""Of what does not fail."""


def gate_text(comparison: Comparison, width: int = WIDTH) -> str:
    """The verdict of the gate, and below it each of its answers; empty without conditions."""
    answers = visible_values(comparison.gate)
    if not answers:
        return ""
    marks = [FAILS if answer.fails else _MARKS[answer.state] for answer in answers]
    told = zip(marks, answer_lines(comparison), strict=True)
    notes = Notes([f"{mark:<{len(FAILS)}}  {line}" for mark, line in told], indent="      ")
    return "\n".join(text_lines([Section(f"gate: {overall_words(answers, 'configuration')}", [notes])], width)) + "\n"


def overall_words(answers: Sequence[Answer | NightFigure], noun: str) -> str:
    """How a gate ended, and at how many of its answers, which are called `noun`, that is not known."""
    fails = sum(answer.fails for answer in answers)
    undecided = sum(answer.undecided for answer in answers)
    told = [f"failed at {fails}"] if fails else []
    told += [f"undecided at {undecided}"] if undecided else []
    return f"{', '.join(told)} of {plural(len(answers), noun)}" if told else "passed"


def failing_lines(comparison: Comparison, *, undecided: bool = False) -> list[str]:
    """A line for each answer by which the gate fails, or which is `undecided`, if these are asked for."""
    answers = zip(comparison.gate, answer_lines(comparison), strict=True)
    return [line for answer, line in answers if answer.fails or (undecided and answer.undecided)]


def answer_lines(comparison: Comparison) -> list[str]:
    """Each answer as one line: condition, row, and what is known of it."""
    several = len(comparison.labels) > 2
    return [_line(answer, several) for answer in visible_values(comparison.gate)]


def _line(answer: Answer, several: bool) -> str:
    place = [*([axes_words(answer.axes)] if answer.axes else []), *([answer.candidate] if several else [])]
    return f"{', '.join([answer.condition.text, *place])}: {_known(answer)}"


def _known(answer: Answer) -> str:
    found = answer.found
    if answer.level is not None:
        return f"{answer.state}: {_level_words(answer.level)}{_to_decide(answer, answer.level.runs)}"
    if answer.state != State.CANNOT_TELL:
        return f"{answer.state}: {estimate_words(found)}{_to_decide(answer, not found.paired)}"
    if not found.is_compared:
        return f"{answer.state}: {answer.because}"
    # Where the readings themselves are the obstacle, the words for it are those below every table.
    if answer.because != found.because:
        return f"{answer.state}: {answer.because}"
    return f"{answer.state}: {untested_words(found)}{_faster(found)}"


def _faster(found: Difference) -> str:
    """What it takes where one run has both sides, in place of runs a side, as the end of a line."""
    if found.paired:
        return ""
    repeats = readings_needed(found.family)
    return f"; fastest, if both can run here: one run with both sides as values of an axis, {repeats} repeats"


def _level_words(level: Level) -> str:
    """A level with its interval and the readings that it rests on, or what one takes."""
    unit = "run" if level.runs else "repeat"
    form = written(level.unit, [level.estimate])
    size, *ends = (
        f"{value_text(value, level.unit, form=form)} {form.unit}".rstrip()
        for value in (level.estimate, *(level.interval or ()))
    )
    if level.interval is None:
        of = f" of one of {level.figures} metrics" if level.figures > 1 else ""
        has, takes = plural(level.readings, unit), plural(level.needed, unit)
        return f"{size}; too few measurements: {has}; the level{of} takes {takes} at least"
    low, high = ends
    corrected = f", corrected for {level.figures} metrics" if level.figures > 1 else ""
    confidence = f"at {level.confidence:.4g} % confidence"
    return f"{size} ({low} to {high}) {confidence}{corrected}, {plural(level.readings, unit)}"


def _to_decide(answer: Answer, runs: bool) -> str:
    """How many readings decide what is possible, as the end of a line; empty for all else."""
    if answer.state != State.POSSIBLE:
        return ""
    unit = "repeats" if not runs else "runs" if answer.level else "runs a side"
    count = f"more than {MOST}" if answer.to_decide is None else f"about {answer.to_decide}"
    return f"; to decide it takes {count} {unit}"
