"""A run as JUnit XML, for the pages of a CI server: a suite a cell, a case a workload of a tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import BinaryIO

from lxml import etree

from vmlab.analysis.cell_shape import CellDocument, WorkloadDocument
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.gate import Answer, State
from vmlab.analysis.comparison.nights import NightGate
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import delivered
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.ordered import ordered_words
from vmlab.model.run import RUN_TIME, Outcome
from vmlab.model.visible import visible_values
from vmlab.report.exports.tidy import Exported, labels_of
from vmlab.report.gate_text import answer_lines
from vmlab.report.night_text import figure_lines, place_name
from vmlab.report.run.target_text import verdict_words
from vmlab.report.words import plural

_FAILURES = (Outcome.FAILED,)
"""What failed by itself is a failure; invalid, aborted and what has not ended are errors: nothing is known."""


def write_junit(runs: Sequence[Exported], file: BinaryIO) -> None:
    """Write the suites. A cell that did not pass, or was not begun, has a case of its own that says why."""
    documents = [(run, visible_values(run.document())) for run in runs]
    root = etree.Element("testsuites", name=documents[0][1].run.scenario or "run")
    for run, document in documents:
        for cell in document.cells:
            root.append(_suite(document, cell))
        missing = document.run.cells_planned - sum(cell.replaced_by is None for cell in document.cells)
        if run.cell is None and missing > 0:
            root.append(_missing(document, missing))
    _number(root)
    file.write(as_file(root))


def _number(root: etree._Element) -> None:
    """Servers know a case by its class and name, so those of further repeats and runs that share both are numbered."""
    met: set[tuple[str, str]] = set()
    for case in root.iter("testcase"):
        of, name, number = case.get("classname", ""), case.get("name", ""), 1
        while (of, case.get("name", "")) in met:
            number += 1
            case.set("name", f"{name} ({number})")
        met.add((of, case.get("name", "")))


def _suite(document: RunDocument, cell: CellDocument) -> etree._Element:
    run = document.run
    name = f"{run.scenario}: {axes_words(cell.axes)}, repeat {cell.repeat}"
    suite = etree.Element("testsuite", name=name, id=str(cell.cell), time=_seconds(cell.wall_seconds))
    if run.started is not None:
        # The format has no zone, so it is UTC here as everywhere in documents.
        moment = datetime.fromisoformat(run.started)
        suite.set("timestamp", moment.replace(tzinfo=None).isoformat(timespec="seconds"))
    if hostname := cell.hypervisor or run.host.get("hostname"):
        suite.set("hostname", str(hostname))
    properties = etree.SubElement(suite, "properties")
    for key, value in _properties(document, cell):
        etree.SubElement(properties, "property", name=key, value=value)
    for workload in cell.workloads:
        suite.append(_case(cell, workload, run.scenario))
    suite.append(_whole(cell, run.scenario, targets_decide=run.targets_decide))
    return counted(suite)


def _properties(document: RunDocument, cell: CellDocument) -> Iterator[tuple[str, str]]:
    run = document.run
    yield from (("run", run.id), ("size", run.size), ("accelerator", str(run.accelerator)))
    yield from (("ordered", word) for word in ordered_words(run.host))
    yield from labels_of(document).items()
    yield from ((name, str(value)) for name, value in cell.axes.items())
    if cell.targets:
        yield "targets", verdict_words(cell)
    for taken in cell.measurements:
        if taken.value is not None and taken.metric != RUN_TIME:
            name = f"{taken.workload} of tile {taken.tile}: {taken.metric}"
            unit = "" if taken.unit == "1" else f" {taken.unit}"
            yield name, f"{taken.value!r}{unit}"


def _case(cell: CellDocument, workload: WorkloadDocument, scenario: str) -> etree._Element:
    place = (workload.workload, workload.tile, RUN_TIME)
    times = (one.value for one in cell.measurements if (one.workload, one.tile, one.metric) == place)
    name = f"{workload.workload} of tile {workload.tile}"
    case = etree.Element("testcase", name=name, classname=_class(cell, scenario), time=_seconds(next(times, None)))
    _told(case, workload.outcome, workload.reason)
    return case


def _whole(cell: CellDocument, scenario: str, *, targets_decide: bool) -> etree._Element:
    """The cell itself: it may be invalid while each of its workloads passed, or fail by a target if these decide."""
    time = _seconds(cell.wall_seconds)
    case = etree.Element("testcase", name=f"cell {cell.cell}", classname=_class(cell, scenario), time=time)
    if cell.replaced_by is not None:
        why = f"{cell.outcome}: {'; '.join(cell.reasons)}; measured again as cell {cell.replaced_by}"
        etree.SubElement(case, "skipped", type=cell.outcome, message=why)
    elif targets_decide and delivered(cell) is False:
        etree.SubElement(case, "failure", type="target", message=verdict_words(cell))
    else:
        _told(case, cell.outcome, "; ".join(cell.reasons))
    return case


def _missing(document: RunDocument, count: int) -> etree._Element:
    run = document.run
    suite = etree.Element("testsuite", name=f"{run.scenario}: not begun", time="0")
    case = etree.SubElement(suite, "testcase", name=plural(count, "cell"), classname=run.scenario, time="0")
    _told(case, Outcome.ABORTED, run.reason)
    return counted(suite)


def _told(case: etree._Element, outcome: str, reason: str) -> None:
    if outcome != Outcome.PASSED:
        tag = "failure" if outcome in _FAILURES else "error"
        etree.SubElement(case, tag, type=outcome, message=reason or f"it is {outcome}")


def counted(suite: etree._Element) -> etree._Element:
    """A suite, or all of them, with the numbers of its cases and of those that did not pass."""
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(len(suite.findall(f".//{tag}"))))
    if skipped := len(suite.findall(".//skipped")):
        suite.set("skipped", str(skipped))
    return suite


def as_file(root: etree._Element) -> bytes:
    """The file of all suites."""
    return etree.tostring(counted(root), encoding="utf-8", xml_declaration=True, pretty_print=True)


def _class(cell: CellDocument, scenario: str) -> str:
    return f"{scenario}.{axes_words(cell.axes)}"


def _seconds(value: float | None) -> str:
    return f"{value or 0.0:.3f}"


def junit_gate(comparison: Comparison) -> bytes:
    """The file. A condition that is met is a failure. One that is undecided is skipped, unless the gate fails by it:
    then it is a failure where it is possible, and an error where nothing is known.
    """
    baseline, *candidates = visible_values(comparison.labels)
    sides = f"{', '.join(candidates)} against {baseline}" if candidates else baseline
    behind = [("accelerator", word) for word in dict.fromkeys(comparison.accelerators) if word]
    behind += [("ordered", word) for word in comparison.ordered]
    lines = zip(comparison.gate, answer_lines(comparison), strict=True)
    told = grouped((visible_values(answer.condition.text), (answer, line)) for answer, line in lines)
    cases = [_condition_case(text, answers) for text, answers in told.items()]
    return _gate_file("vmlab compare", f"gate: {sides}", behind, cases)


def junit_night(gate: NightGate, *, strict: bool = False) -> bytes:
    """The file of a night: a case a figure. A worse one is a failure; an undecided one is skipped, or with `strict` an
    error.
    """
    gate = visible_values(gate)
    cases = []
    for figure, line in zip(gate.figures, figure_lines(gate), strict=True):
        tag = "failure" if figure.fails else ("error" if strict else "skipped") if figure.undecided else None
        cases.append(_gate_case(place_name(figure), tag, str(figure.state), [line], [line]))
    behind = [("run", gate.run.id), ("accelerator", str(gate.run.accelerator)), ("nights", str(len(gate.nights)))]
    behind += [("ordered", word) for word in ordered_words(gate.run.host)]
    return _gate_file("vmlab gate", f"gate: {gate.run.scenario} against {gate.baseline}", behind, cases)


def _gate_file(command: str, title: str, behind: Sequence[tuple[str, str]], cases: Sequence[etree._Element]) -> bytes:
    root = etree.Element("testsuites", name=command)
    suite = etree.SubElement(root, "testsuite", name=title)
    if behind:
        properties = etree.SubElement(suite, "properties")
        for name, value in behind:
            etree.SubElement(properties, "property", name=name, value=value)
    suite.extend(cases)
    counted(suite)
    for element in (suite, root):
        element.set("skipped", str(len(suite.findall(".//skipped"))))
    return as_file(root)


def _gate_case(name: str, tag: str | None, kind: str, why: Sequence[str], lines: Sequence[str]) -> etree._Element:
    """A case with all its `lines`, and the lines of `why` it carries this tag, if any."""
    case = etree.Element("testcase", name=name, classname="vmlab.gate")
    if tag is not None:
        etree.SubElement(case, tag, type=kind, message="; ".join(why))
    etree.SubElement(case, "system-out").text = "\n".join(lines)
    return case


def _condition_case(text: str, answers: Sequence[tuple[Answer, str]]) -> etree._Element:
    """The case of a condition, with the lines of the answers that made it what it is."""
    tag = _tag([answer for answer, _ in answers])
    chosen = [(one, line) for one, line in answers if (one.undecided if tag == "skipped" else one.fails)]
    kind = str(chosen[0][0].state) if chosen else ""
    return _gate_case(text, tag, kind, [line for _, line in chosen], [line for _, line in answers])


def _tag(answers: Sequence[Answer]) -> str | None:
    """What a case carries for its answers; None where it passes."""
    failing = [answer.state for answer in answers if answer.fails]
    if any(state != State.CANNOT_TELL for state in failing):
        return "failure"
    if failing:
        return "error"
    return "skipped" if any(answer.undecided for answer in answers) else None
