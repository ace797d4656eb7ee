"""The answers to all claims on the page of experiments: counted by publication, and each with what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.experiments.records import day_of, repeats_of
from tests.experiments.would_take import would_take
from vmlab.model.axes import absent_words
from vmlab.model.run import EMULATED
from vmlab.model.scenarios.reference import Claim
from vmlab.model.units import format_bytes
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.report.reference_text import answer_words

NOT_ASKED_YET = "not asked yet"
_COUNTED = ("reproduced", "not reproduced", "cannot tell", "absent")
_ANSWERS = _COUNTED[:2]
_ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Kept:
    """The record that answers a scenario's claims, and whether it is of a run with the repeats that they take.

    `again` is that of another day, on which the same was asked.
    """

    record: Mapping[str, Any]
    enough: bool
    again: Mapping[str, Any] | None = None

    @property
    def run(self) -> Mapping[str, Any]:
        """The run, as the record has it."""
        run: Mapping[str, Any] = self.record["beside"]["run"]
        return run

    @property
    def command(self) -> str:
        """What measures it again."""
        repeats = f" --repeats {repeats_of(self.record)}" if self.enough else ""
        return f"vmlab run {self.run['scenario']} --size {self.run['size']}{repeats}"

    def body(self, claim: Claim) -> Mapping[str, Any] | None:
        """The claim as the record answers it; None for one that is newer than the run."""
        return _body(self.record, claim)

    def body_again(self, claim: Claim) -> Mapping[str, Any] | None:
        """The claim as it was answered on another day; None where it was not asked."""
        return _body(self.again, claim) if self.again else None


def _body(record: Mapping[str, Any], claim: Claim) -> Mapping[str, Any] | None:
    return next((one for one in record["beside"]["claims"] if one["say"] == claim.say), None)


def answers(publications: Mapping[str, Sequence[ScenarioFile]], found: Mapping[str, Kept]) -> Iterator[str]:
    """The lines of both tables for each accelerator, those of KVM first, and how many were asked on another day too."""
    for accelerator in sorted(
        {one.run["accelerator"] for one in found.values()}, key=lambda one: (one == EMULATED, one)
    ):
        here = {name: one for name, one in found.items() if one.run["accelerator"] == accelerator}
        yield from (f"### {'Emulated guests (tcg)' if accelerator == EMULATED else accelerator.upper()}", "")
        yield from _counted(publications, here)
        yield from _asked_again(publications, here)
        yield from _each(publications, here)


def _counted(publications: Mapping[str, Sequence[ScenarioFile]], found: Mapping[str, Kept]) -> Iterator[str]:
    yield f"| publication | claims | {' | '.join(_COUNTED)} | {NOT_ASKED_YET} |"
    yield f"| --- |{' ---: |' * (len(_COUNTED) + 2)}"
    total: Counter[str] = Counter()
    for title, files in publications.items():
        counts = Counter(word for file in files for word in _words(file, found.get(file.scenario.name)))
        total += counts
        yield _counts(title, counts)
    yield _counts("all", total)
    yield ""


def _asked_again(publications: Mapping[str, Sequence[ScenarioFile]], found: Mapping[str, Kept]) -> Iterator[str]:
    """How many of the claims that have an answer were asked again on another day, and in how many both agree."""
    pairs = [
        (answer_of(first), answer_of(again))
        for file in (one for files in publications.values() for one in files)
        for claim in file.scenario.claims
        if (kept := found.get(file.scenario.name)) and (first := kept.body(claim)) and (again := kept.body_again(claim))
    ]
    answered = [first == again for first, again in pairs if first in _ANSWERS]
    if answered:
        asked = f"{len(answered)} claims that have an answer were asked again on another day"
        yield from (f"{asked}; {sum(answered)} had the same.", "")


def _words(file: ScenarioFile, kept: Kept | None) -> Iterator[str]:
    for claim in file.scenario.claims:
        body = kept.body(claim) if kept else None
        yield NOT_ASKED_YET if body is None else answer_of(body)


def answer_of(body: Mapping[str, Any]) -> str:
    """The answer to a claim in one of four words: one that compares what cannot be had here is absent."""
    lacks = any(_is_absent(one) for one in body["evidence"])
    return _ABSENT if lacks and body["answer"] == "cannot tell" else answer_words(body["answer"])


def _is_absent(evidence: Mapping[str, Any]) -> bool:
    """Whether the reason for no figure is that one of the place's values cannot be had."""
    return any(
        evidence["reason"].startswith(absent_words(name, [value], "")) for name, value in evidence["place"].items()
    )


def _counts(title: str, counts: Counter[str]) -> str:
    words = [str(counts[word]) for word in (*_COUNTED, NOT_ASKED_YET)]
    return f"| {title} | {counts.total()} | {' | '.join(words)} |"


def _each(publications: Mapping[str, Sequence[ScenarioFile]], found: Mapping[str, Kept]) -> Iterator[str]:
    yield "| claim | answer | what decides it | repeats | measured | command |"
    yield "| --- | --- | --- | ---: | --- | --- |"
    for file in (one for files in publications.values() for one in files):
        kept = found.get(file.scenario.name)
        for claim in file.scenario.claims if kept else ():
            body = kept.body(claim) if kept else None
            if kept and body:
                yield _row(claim, body, kept)
    yield ""


def _row(claim: Claim, body: Mapping[str, Any], kept: Kept) -> str:
    """A claim, its answer, the comparison that decides it with its interval, and the run."""
    deciding = next((one for one in body["comparisons"] if one["answer"] == body["answer"]), None)
    lacking = [one["reason"] for one in body["evidence"] if answer_of(body) == _ABSENT and _is_absent(one)]
    because = lacking[0] if lacking else deciding["because"] if deciding else "; ".join(body["because"])
    if answer_of(body) == "cannot tell" and (words := would_take(claim, body)):
        because = f"{because}; {words}"
    repeats = max((one["count"] for one in body["evidence"] if one["mean"] is not None), default=0)
    machine = kept.record["machine"]
    host = f"{machine['cpus']} x {machine['cpu']}, {format_bytes(machine['memory_bytes'])}"
    measured = f"{day_of(kept.record)}, {host}"
    if kept.again and (again := kept.body_again(claim)):
        same = answer_of(again) == answer_of(body)
        measured = f"{measured}; on {day_of(kept.again)} {'the same' if same else answer_of(again)}"
    return f"| {claim.say} | {answer_of(body)} | {because} | {repeats} | {measured} | `{kept.command}` |"
