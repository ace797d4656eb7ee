"""``docs/evidence/experiments.md``, a page a publication, and the list of shipped scenarios, made from the scenarios
and their results.

``python -m tests.experiments.page`` writes all again. Results are those that `make test-experiments` kept. With
``--anew`` the claims of today are asked of the runs that are kept first, from their archives.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.experiments.answers import NOT_ASKED_YET, Kept, answer_of, counts, each
from tests.experiments.believed import believed
from tests.experiments.own_table import own_table
from tests.experiments.page_texts import COUNTED, LEGEND, MADE, PREFACE
from tests.experiments.records import AGAIN, CLAIMED, KVM, answer_anew, is_emulated, kept, shipped
from vmlab.analysis.figures.figure import Figure
from vmlab.analysis.figures.reading import NO_CELL
from vmlab.analysis.reference.published import AnsweredFigure, published_alone
from vmlab.analysis.shape import AbsentDocument
from vmlab.analysis.statistics.descriptive import Spread
from vmlab.analysis.statistics.sample_size import readings_needed
from vmlab.model.places import shipped_scenarios
from vmlab.model.quantities import format_bytes
from vmlab.model.run import EMULATED
from vmlab.model.scenarios.reference import PublishedFigure, Reference, printed_number
from vmlab.model.scenarios.table_words import PARTS
from vmlab.plan.scenario_file.loading import ScenarioFile, shipped_names
from vmlab.report.reference_text import (
    answer_words,
    contradicted_words,
    error_notes,
    printed_tables,
    restated_words,
    source_words,
)
from vmlab.report.run.run_notes import absent_notes
from vmlab.report.writers.text import paragraph, text_lines

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "evidence" / "experiments.md"
FOLDER = DOCS / "evidence" / "experiments"
OWN = FOLDER / "of-our-own.md"
LIST = DOCS / "reference" / "scenarios.md"
_LIST = re.compile(r"(<!-- scenarios -->\n).*?(<!-- end -->)", re.DOTALL)
_WIDTH = 118
_EXACT_FROM = "2026-11-28"
"""Runs that began before have the host's figures by ticks, not from a cell's start to its end."""
NOT_RUN = "no result is kept yet"
NOT_ASKED = "not asked of the run that is kept"

Records = Mapping[str, Mapping[str, Any]]
"""Records of runs by the name of their scenario."""


_NONE: Records = MappingProxyType({})


def pages(results: Records, claimed: Records, again: Records = _NONE, kvm: Records = _NONE) -> dict[Path, str]:
    """The summary and a page a publication, by their files, with the records of those scenarios that were run, those of
    runs with repeats for claims, those of runs that were asked the same on another day, and those of a host with KVM.
    """
    found = _found(results, claimed, again, kvm)
    asked = {name: one for name, one in found.items() if "claims" in one.record["beside"]}
    made = {PAGE: [PREFACE, *_summary(asked)]}
    for title, files in publications().items():
        made[page_of(title)] = [*_publication(title, files, asked)]
        for file in files:
            name = file.scenario.name
            made[page_of(title)] += _experiment(file, results.get(name), found[name].record if name in found else None)
    made[OWN] = ["# Experiments of our own", "", "No publication has values for these.", ""]
    for file in own():
        made[OWN] += _of_our_own(file, results.get(file.scenario.name))
    return {file: "\n".join(lines).rstrip() + "\n" for file, lines in made.items()}


def page_of(title: str) -> Path:
    """The file of a publication's page."""
    return FOLDER / f"{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}.md"


def listed(text: str) -> str:
    """The page `LIST` with the list of scenarios as they describe themselves."""
    rows = ["| scenario | what it shows |", "| --- | --- |"]
    published = [one for files in publications().values() for one in files]
    rows += [f"| `{one.scenario.name}` | {one.scenario.summary} |" for one in (*published, *own())]
    return _LIST.sub(lambda place: "\n".join([place[1] + rows[0], *rows[1:], place[2]]), text)


def published_names() -> list[str]:
    """The shipped scenarios that reproduce a publication, in alphabetical order; others ask something of this host."""
    # To read them takes seconds, which each process that collects tests would spend.
    texts = {name: (shipped_scenarios() / f"{name}.yaml").read_text(encoding="utf-8") for name in shipped_names()}
    return [name for name, text in texts.items() if "\nreference:\n" in text]


def own() -> list[ScenarioFile]:
    """The shipped scenarios that no publication has, in alphabetical order."""
    published = set(published_names())
    return [shipped(name) for name in shipped_names() if name not in published]


def publications() -> dict[str, list[ScenarioFile]]:
    """The shipped scenarios by the title of their publication, both in alphabetical order of scenarios."""
    found: dict[str, list[ScenarioFile]] = {}
    for name in published_names():
        file = shipped(name)
        found.setdefault(_reference(file).title, []).append(file)
    return found


def results() -> dict[str, dict[str, Any]]:
    """The kept records by scenario."""
    return {name: record for name in shipped_names() if (record := kept(name)) is not None}


def claimed_results() -> dict[str, dict[str, Any]]:
    """The kept records of runs with the repeats that claims take, by scenario."""
    return _claimed(CLAIMED)


def asked_again() -> dict[str, dict[str, Any]]:
    """Those that were asked the same on another day."""
    return _claimed(AGAIN)


def on_kvm() -> dict[str, dict[str, Any]]:
    """Those of a host with KVM."""
    return _claimed(KVM)


def _claimed(folder: Path) -> dict[str, dict[str, Any]]:
    return {name: record for name in published_names() if (record := kept(name, folder)) is not None}


def answer_of_claim(name: str, say: str) -> str:
    """The word of the table of counts for a claim of a scenario, by the records that are kept today."""
    found = _found(results(), claimed_results()).get(name)
    claim = next(one for one in shipped(name).scenario.claims if one.say == say)
    body = found.body(claim) if found else None
    return NOT_ASKED_YET if body is None else answer_of(body)


def _found(results: Records, claimed: Records, again: Records = _NONE, kvm: Records = _NONE) -> dict[str, Kept]:
    """The records that answer claims, by scenario: of a run with the repeats that they take, where there is one."""
    records = {**results, **claimed}
    return {name: Kept(one, name in claimed, again.get(name), kvm.get(name)) for name, one in records.items()}


def _reference(file: ScenarioFile) -> Reference:
    reference = file.scenario.reference
    assert reference is not None, f"{file.scenario.name} names no publication"
    return reference


def _summary(found: Mapping[str, Kept]) -> Iterator[str]:
    """What runs here answered of each publication, the counts, and how all of it is made."""
    yield from ("## Publications", "")
    for title, sentences in believed().items():
        answered = next((one for one in sentences if one.rests_on), sentences[1])
        yield from paragraph(f"- [{title}](experiments/{page_of(title).name}): {answered.say}", _WIDTH, "  ")
    yield from ("", f"vmlab's [own experiments](experiments/{OWN.name}) have no publication.", "")
    if found:
        yield from ("## Answers, counted", "")
        yield from _paragraph(COUNTED)
        for records in _by_host(found):
            yield from counts(publications(), records)
    yield from ("## How these pages are made", "")
    yield from _paragraph(MADE)


def _publication(title: str, files: Sequence[ScenarioFile], found: Mapping[str, Kept]) -> Iterator[str]:
    """The head of a publication's page: what to believe of it, and each claim with what decides it."""
    yield from (f"# {title}", "")
    yield from _paragraph(" ".join(one.say for one in believed()[title]))
    yield from _paragraph(LEGEND)
    tables = [line for records in _by_host(found) for line in each({title: files}, records)]
    if tables:
        yield from ("## Claims and answers", "", *tables)


def _by_host(found: Mapping[str, Kept]) -> Iterator[Mapping[str, Kept]]:
    """The records of a host with KVM, and those of this one."""
    kvm = {name: one.kvm for name, one in found.items() if one.kvm and not is_emulated(one.kvm)}
    yield {name: Kept(record, True) for name, record in kvm.items()}
    yield found


def _experiment(
    file: ScenarioFile, record: Mapping[str, Any] | None, claimed: Mapping[str, Any] | None
) -> Iterator[str]:
    scenario, reference = file.scenario, _reference(file)
    yield from (f"## {scenario.name}", "", scenario.summary, "")
    yield from _paragraph(f"Published: {reference.source}. Measured on {reference.host}.")
    yield from _paragraph(f"Here: {reference.here}" if reference.here else "")
    yield from _tables(file, record)
    yield from _paragraph(f"Ours: {_ours(file, record)}")
    yield from _claims(file, claimed)
    yield from _unasked(reference)


def _of_our_own(file: ScenarioFile, record: Mapping[str, Any] | None) -> Iterator[str]:
    yield from (f"## {file.scenario.name}", "", file.scenario.summary, "")
    if record:
        yield from ("```text", *_own_tables(record)[1:], "```", "")
        yield from _paragraph(f"Ours: {_measured(file, record)}.")
    else:
        yield from _paragraph(f"Ours: {NOT_RUN}.")


def _own_tables(record: Mapping[str, Any]) -> list[str]:
    return [line for table in record["beside"]["tables"] for line in own_table(record, table)]


def _paragraph(text: str) -> Iterator[str]:
    if text:
        yield from (*paragraph(text, _WIDTH), "")


def _tables(file: ScenarioFile, record: Mapping[str, Any] | None) -> Iterator[str]:
    """The publication's tables with ours beside, or our own where it has charts, and what is to be said of them."""
    figures = answered(_reference(file), record)
    lines = text_lines(printed_tables(figures, "ours" if record else None), _WIDTH)
    if not figures:
        yield from (f"The publication prints no values for this{'; the table is our own' if record else ''}.", "")
        lines = _own_tables(record) if record else []
    if lines:
        yield from ("```text", *lines[1:], "```", "")
    if figures and record and (rows := _rows_of_ours(figures, record)):
        yield from ("Rows of ours, without published values:", "", "```text", *rows[1:], "```", "")
    notes = [*error_notes(figures), *_absent(file, record)]
    if any(figure.reason.startswith(NO_CELL) for figure in figures):
        notes.append("A dash: the run has no such cell.")
    yield from (line for note in notes for line in paragraph(f"- {note}", _WIDTH, "  "))
    if notes:
        yield ""


def _rows_of_ours(figures: Sequence[AnsweredFigure], record: Mapping[str, Any]) -> list[str]:
    """The rows of the run's own table with values of axes that no published figure has."""
    printed = [{**one.published.rows, **one.published.columns} for one in figures]

    def ours(row: Mapping[str, Any]) -> bool:
        axes = {part: value for part, value in row["head"].items() if part not in PARTS}
        known = any(axes.items() <= one.items() for one in printed)
        return bool(axes) and not known and any(entry["mean"] is not None for entry in row["entries"])

    tables = [{**table, "rows": list(filter(ours, table["rows"]))} for table in record["beside"]["tables"]]
    return [line for table in tables if table["rows"] for line in own_table(record, table)]


def _absent(file: ScenarioFile, record: Mapping[str, Any] | None) -> list[str]:
    """Why values of an axis have no cells: in the scenario itself, and on the host of the run that is kept."""
    document = published_alone(file.scenario).document
    rows = [row for table in (record["beside"]["tables"] if record else ()) for row in table["rows"]]
    of_run: list[AbsentDocument] = [
        AbsentDocument(axes=row["head"], reason=row["absent"]) for row in rows if row["absent"] is not None
    ]
    planned = document.run.absent
    absent = [*planned, *(one for one in of_run if one not in planned)]
    return list(absent_notes(replace(document, run=replace(document.run, absent=absent))))


def answered(reference: Reference, record: Mapping[str, Any] | None) -> tuple[AnsweredFigure, ...]:
    """The scenario's published figures with those that were kept of a run; without one where there is none."""
    bodies = {_place(body): body for body in (record["beside"]["figures"] if record else ())}
    return tuple(_answered(figure, bodies.get(_printed_place(figure))) for figure in reference.figures)


def _answered(figure: PublishedFigure, body: Mapping[str, Any] | None) -> AnsweredFigure:
    printed = printed_number(figure.value)
    if body is None:
        return AnsweredFigure(figure, printed, Figure("missing"), reason=NOT_RUN)
    one = body["measured"]
    spread = None if one["mean"] is None else Spread(one["mean"], one["half_width_95"], one["count"])
    ours = Figure(one["state"], spread, one["left_out"])
    percent = body["percent_of_published"]
    return AnsweredFigure(figure, printed, ours, percent, tuple(one["cells"]), one["reason"], one["accelerator"])


def _place(body: Mapping[str, Any]) -> tuple[object, ...]:
    return body["metric"], str(body["rows"]), str(body["columns"]), body["where"], body["kind"]


def _printed_place(figure: PublishedFigure) -> tuple[object, ...]:
    return figure.metric, str(figure.rows), str(figure.columns), figure.where, figure.kind


def _ours(file: ScenarioFile, record: Mapping[str, Any] | None) -> str:
    """Size, accelerator, date and machine of the run, and whether it compares."""
    if record is None:
        return f"{NOT_RUN}."
    alike = record["beside"]["compares"]
    compares = "Values are" if alike else "Amounts differ, so only relative values may be"
    return f"{_measured(file, record)}. {compares} comparable with the published ones."


def _measured(file: ScenarioFile, record: Mapping[str, Any]) -> str:
    run = record["beside"]["run"]
    machine = _machine(record["machine"])
    parts = [f"size {run['size']}", f"accelerator {run['accelerator']}", str(run["started"])[:10], *machine]
    return f"{', '.join(parts)} ([JSON]({file.scenario.name}.json))"


def _machine(machine: Mapping[str, Any]) -> Iterator[str]:
    yield f"{machine['cpus']} x {machine['cpu']}"
    yield format_bytes(machine["memory_bytes"])
    yield from (f"{word} {machine[key]}" for key, word in _VERSIONS.items() if machine.get(key))


_VERSIONS = {"kernel": "Linux", "qemu": "QEMU", "libvirt": "libvirt"}


def _claims(file: ScenarioFile, record: Mapping[str, Any] | None) -> Iterator[str]:
    claims = _reference(file).claims
    if not claims:
        return
    answers = {body["say"]: _answer(record, body) for body in (record["beside"]["claims"] if record else ())}
    unknown = NOT_ASKED if record else NOT_RUN
    by_ticks = ", by ticks" if record and record["beside"]["run"]["started"] < _EXACT_FROM else ""
    yield from ("| claim | where the publication says it | answer | repeats at least |", "| --- | --- | --- | --- |")
    for claim in claims:
        published = "<br>".join(filter(None, (source_words(claim), contradicted_words(claim), restated_words(claim))))
        answer, needed = answers.get(claim.say, unknown), readings_needed(claim.comparisons)
        mark = by_ticks if claim.say in answers and claim.metric.startswith("host.") else ""
        yield f"| {claim.say} | {published} | {answer}{mark} | {needed} |"
    yield ""


def _unasked(reference: Reference) -> Iterator[str]:
    if not reference.unasked:
        return
    yield from ("Not asked here:", "")
    for finding in reference.unasked:
        yield from paragraph(f"- {finding.say} ({finding.where}.) Not asked: {finding.why}.", _WIDTH, "  ")
    yield ""


def _answer(record: Mapping[str, Any] | None, body: Mapping[str, Any]) -> str:
    assert record is not None
    run = record["beside"]["run"]
    how = [f"size {run['size']}", *([EMULATED] if run["accelerator"] == EMULATED else [])]
    pointed = f", points to: {answer_words(body['points_to'])}" if body["points_to"] else ""
    return f"{answer_words(body['answer'])}{pointed} ({', '.join(how)})"


def main() -> None:
    """Write all pages, and the list."""
    for file, text in pages(results(), claimed_results(), asked_again(), on_kvm()).items():
        file.write_text(text, encoding="utf-8")
    LIST.write_text(listed(LIST.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    if "--anew" in sys.argv[1:]:
        answer_anew()
    main()
