"""The gate of a comparison as JUnit XML: a case a condition."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.gate import Answer, State
from vmlab.model.visible import visible_values
from vmlab.report.exports.junit import as_file, counted
from vmlab.report.gate_text import answer_lines


def junit_gate(comparison: Comparison) -> bytes:
    """The file. A condition that is met is a failure. One that is undecided is skipped, unless the gate fails by it:
    then it is a failure where it is possible, and an error where nothing is known.
    """
    baseline, *candidates = visible_values(comparison.labels)
    root = etree.Element("testsuites", name="vmlab compare")
    suite = etree.SubElement(root, "testsuite", name=f"gate: {', '.join(candidates)} against {baseline}")
    behind = [("accelerator", word) for word in dict.fromkeys(comparison.accelerators) if word]
    behind += [("ordered", word) for word in comparison.ordered]
    if behind:
        properties = etree.SubElement(suite, "properties")
        for name, value in behind:
            etree.SubElement(properties, "property", name=name, value=value)
    told: dict[str, list[tuple[Answer, str]]] = {}
    for answer, line in zip(comparison.gate, answer_lines(comparison), strict=True):
        told.setdefault(visible_values(answer.condition.text), []).append((answer, line))
    for text, answers in told.items():
        case = etree.SubElement(suite, "testcase", name=text, classname="vmlab.gate")
        if (tag := _tag([answer for answer, _ in answers])) is not None:
            _why(etree.SubElement(case, tag), answers, failing=tag != "skipped")
        etree.SubElement(case, "system-out").text = "\n".join(line for _, line in answers)
    counted(suite)
    for element in (suite, root):
        element.set("skipped", str(len(suite.findall(".//skipped"))))
    return as_file(root)


def _tag(answers: Sequence[Answer]) -> str | None:
    """What a case carries for its answers; None where it passes."""
    failing = [answer.state for answer in answers if answer.fails]
    if any(state != State.CANNOT_TELL for state in failing):
        return "failure"
    if failing:
        return "error"
    return "skipped" if any(answer.undecided for answer in answers) else None


def _why(element: etree._Element, answers: Sequence[tuple[Answer, str]], *, failing: bool) -> None:
    """The lines of the answers that made the case what it is."""
    chosen = [(a, line) for a, line in answers if (a.fails if failing else a.undecided)]
    element.set("type", str(chosen[0][0].state))
    element.set("message", "; ".join(line for _, line in chosen))
