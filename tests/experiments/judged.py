"""What is wrong with a run of an experiment, and with what is printed of it beside its publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from vmlab.analysis.reference.claims import Answer
from vmlab.model.axes import axes_words
from vmlab.model.scenarios.reference import Reference
from vmlab.report.reference_text import answer_words

_ANSWERED = ("reproduced", "not")


def faults_of_run(document: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a run: `document` is ``vmlab.run/1``."""
    run, cells = document["run"], document["cells"]
    if run["outcome"] != "passed":
        yield f"the run is {run['outcome']}" + (f": {run['reason']}" if run["reason"] else "")
    if len(cells) != run["cells_planned"] or not cells:
        yield f"it has {len(cells)} of {run['cells_planned']} cells"
    for cell in cells:
        where = f"cell {cell['cell']} ({axes_words(cell['axes'])})"
        if cell["outcome"] != "passed":
            yield f"{where} is {cell['outcome']}: {'; '.join(cell['reasons'])}"
        elif not any(one["value"] is not None for one in cell["measurements"]):
            yield f"{where} has no figure"


def faults_beside(reference: Reference, body: Mapping[str, Any], text: str) -> Iterator[str]:
    """What is wrong with a run beside its publication: `body` is ``vmlab.reference/1``, `text` the same for people.

    Without a run, the publication alone is looked at.
    """
    yield from _faults_of_claims(reference, body, text)
    missing = [figure.value for figure in reference.figures if figure.value not in text]
    if missing:
        yield f"{len(missing)} published figures are not printed, the first of them {missing[0]}"
    if len(body["figures"]) != len(reference.figures):
        yield f"{len(body['figures'])} of {len(reference.figures)} published figures are in the JSON"
    if body["run"] is not None:
        yield from _faults_of_figures(body, text) if reference.figures else _faults_of_tables(body["tables"])


def _faults_of_claims(reference: Reference, body: Mapping[str, Any], text: str) -> Iterator[str]:
    if [one["say"] for one in body["claims"]] != [claim.say for claim in reference.claims]:
        yield "the claims in the JSON are not those of the scenario"
    for claim in body["claims"]:
        printed = f"{answer_words(claim['answer'])}: {claim['say']}" if body["run"] is not None else claim["say"]
        if claim["answer"] not in get_args(Answer) or not claim["because"]:
            yield f"no answer with a reason to the claim: {claim['say']}"
        elif any(_unfounded(one) for one in claim["comparisons"]):
            yield f"an answer without an interval to the claim: {claim['say']}"
        elif not all(words in text for words in (printed, claim["where"], claim["there"], claim["contradicted"])):
            yield f"the claim is not printed with its answer: {claim['say']}"
    for finding in reference.unasked:
        if finding.say not in text or finding.why not in text:
            yield f"the finding is not printed with its reason: {finding.say}"


def _unfounded(comparison: Mapping[str, Any]) -> bool:
    """Whether it is answered although the readings have no interval."""
    level, difference = comparison["level"], comparison["difference"]
    interval = level["interval"] if level else difference["interval_percent"]
    return comparison["answer"] in _ANSWERED and interval is None


def _faults_of_figures(body: Mapping[str, Any], text: str) -> Iterator[str]:
    """Each figure has one of the run's beside it, or the reason for none, and some have one."""
    measured = [one["measured"] for one in body["figures"]]
    if not any(one["mean"] is not None for one in measured):
        yield "no figure of the run stands beside a published one"
    for figure in body["figures"]:
        one = figure["measured"]
        if one["mean"] is None and not one["reason"]:
            yield f"{figure['where']}: the run's figure is {one['state']}, without a reason"
    if not all(word in text for word in ("theirs", "yours")):
        yield "the table has not both theirs and yours"


def _faults_of_tables(tables: list[Mapping[str, Any]]) -> Iterator[str]:
    """Where the publication has charts alone, every row of the run's own tables has a figure."""
    if not tables:
        yield "the run has no table"
    for table in tables:
        for row in table["rows"]:
            if row["absent"] is None and all(entry["mean"] is None for entry in row["entries"]):
                yield f"the table's row {', '.join(map(str, row['head'].values()))} is empty"
