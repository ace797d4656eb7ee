"""The gate of a comparison in words: a line for each condition at each row."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.comparison import Comparison
from vmlab.analysis.gate import Answer, State
from vmlab.model.axes import axes_words
from vmlab.model.visible import visible_values
from vmlab.report.grid import WIDTH, paragraph
from vmlab.report.verdicts import UNPROVEN, UNTESTED, estimate_words, untested_words
from vmlab.report.words import plural

_FAILS = "FAIL"
_MARKS = {State.NOT_MET: "ok", State.POSSIBLE: UNPROVEN, State.CANNOT_TELL: UNTESTED}
"""Of what does not fail."""


def gate_text(comparison: Comparison, width: int = WIDTH) -> str:
    """The verdict of the gate, and below it each of its answers; empty without conditions."""
    answers = visible_values(comparison.gate)
    if not answers:
        return ""
    lines = ["", f"gate: {_overall(answers)}"]
    for answer, line in zip(answers, answer_lines(comparison), strict=True):
        mark = _FAILS if answer.fails else _MARKS[answer.state]
        lines += paragraph(f"{mark:<{len(_FAILS)}}  {line}", width, "      ")
    return "\n".join(lines) + "\n"


def _overall(answers: Sequence[Answer]) -> str:
    """How it ended, and where nothing is known, which a gate passes unless it is strict."""
    places = plural(len(answers), "place")
    fails = sum(answer.fails for answer in answers)
    unknown = sum(answer.state == State.CANNOT_TELL for answer in answers)
    told = f"failed at {fails} of {places}" if fails else "passed"
    return f"{told}; nothing can be told at {unknown} of {places}" if unknown else told


def failing_lines(comparison: Comparison) -> list[str]:
    """A line for each answer by which the gate fails."""
    answers = zip(comparison.gate, answer_lines(comparison), strict=True)
    return [line for answer, line in answers if answer.fails]


def answer_lines(comparison: Comparison) -> list[str]:
    """Each answer as one line: condition, row, and what is known of it."""
    several = len(comparison.labels) > 2
    return [_line(answer, several) for answer in visible_values(comparison.gate)]


def _line(answer: Answer, several: bool) -> str:
    place = [*([axes_words(answer.axes)] if answer.axes else []), *([answer.candidate] if several else [])]
    return f"{', '.join([answer.condition.text, *place])}: {_known(answer)}"


def _known(answer: Answer) -> str:
    found = answer.found
    if answer.state != State.CANNOT_TELL:
        return f"{answer.state}: {estimate_words(found)}"
    # Where the readings themselves are the obstacle, the words for it are those below every table.
    return f"{answer.state}: {answer.because if answer.because != found.because else untested_words(found)}"
