"""The answers to all claims on the page of experiments: counted, and each with what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.experiments.records import day_of, is_emulated, repeats_of
from tests.experiments.would_take import would_take
from vmlab.analysis.reference.claims import NOT_HERE
from vmlab.model.quantities import format_bytes
from vmlab.model.run import EMULATED
from vmlab.model.scenarios.reference import Claim, every_place, place_axes
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.report.reference_text import OF_EMULATION, answer_words

NOT_ASKED_YET = "not asked yet"
NOT_DELIVERED = "not delivered"
_ANSWERS = ("reproduced", "not reproduced")
WORDS = (*_ANSWERS, "cannot tell", NOT_DELIVERED, NOT_HERE, NOT_ASKED_YET)
"""Every answer that the page counts, each by itself."""
Publications = Mapping[str, Sequence[ScenarioFile]]


@dataclass(frozen=True, slots=True)
class Kept:
    """The record that answers a scenario's claims, and whether it is of a run with the repeats that they take.

    `again` is that of another day, on which the same was asked, and `kvm` that of a host with KVM.
    """

    record: Mapping[str, Any]
    enough: bool
    again: Mapping[str, Any] | None = None
    kvm: Mapping[str, Any] | None = None

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

    def on_kvm(self, claim: Claim) -> Mapping[str, Any] | None:
        """The claim as a host with KVM answered it; None where none was asked, and where that host was emulated."""
        return None if self.kvm is None or is_emulated(self.kvm) else _body(self.kvm, claim)


@dataclass(frozen=True, slots=True)
class Answered:
    """A claim of a scenario with its publication and the record that answers it, if there is one."""

    title: str
    file: ScenarioFile
    claim: Claim
    kept: Kept | None

    @property
    def body(self) -> Mapping[str, Any] | None:
        """The claim as it is answered; None where it was not asked yet."""
        return self.kept.body(self.claim) if self.kept else None

    @property
    def word(self) -> str:
        """The answer, one of `WORDS`."""
        return answer_of(self.body) if self.body else NOT_ASKED_YET

    @property
    def is_own(self) -> bool:
        """Whether it counts for its publication: that makes the claim, and no other one stands for it."""
        return self.claim.source == "publication" and self.claim.restates is None


def _body(record: Mapping[str, Any], claim: Claim) -> Mapping[str, Any] | None:
    return next((one for one in record["beside"]["claims"] if one["say"] == claim.say), None)


def answer_of(body: Mapping[str, Any]) -> str:
    """The answer to a claim in words that stand alone."""
    return answer_words(body["answer"])


def counts(publications: Publications, found: Mapping[str, Kept]) -> Iterator[str]:
    """The tables of counts for each accelerator, those of KVM first, and how many were asked on another day too."""
    for title, every in _by_accelerator(publications, found):
        yield from (title, "")
        yield from _counted(publications, every)
        yield from _asked_again(every)


def each(publications: Publications, found: Mapping[str, Kept]) -> Iterator[str]:
    """Every claim with what decides it, for each accelerator that has an answer to one."""
    for title, every in _by_accelerator(publications, found):
        if asked := [one for one in every if one.body]:
            yield from (title, "", *_each(asked))


def _by_accelerator(publications: Publications, found: Mapping[str, Kept]) -> Iterator[tuple[str, list[Answered]]]:
    """A heading and the claims of all publications."""
    accelerators = {one.run["accelerator"] for one in found.values()}
    for accelerator in sorted(accelerators, key=lambda one: (one == EMULATED, one)):
        here = {name: one for name, one in found.items() if one.run["accelerator"] == accelerator}
        yield (
            f"### {'Emulated guests (tcg)' if accelerator == EMULATED else accelerator.upper()}",
            [
                Answered(title, file, claim, here.get(file.scenario.name))
                for title, files in publications.items()
                for file in files
                for claim in file.scenario.claims
            ],
        )


def _counted(publications: Publications, every: Sequence[Answered]) -> Iterator[str]:
    """The publications' own claims, each once; then the same by bound and by size, and those that are counted apart."""
    own = [one for one in every if one.is_own]
    yield from _table("claims of the publication", {title: _of(own, title) for title in publications}, own)
    yield from _table("of these, by bound", {words: list(filter(is_so, own)) for words, is_so in _BOUNDS.items()})
    sizes = dict.fromkeys(one.kept.run["size"] for one in own if one.kept and one.body)
    by_size = {f"size {size}": [one for one in own if one.kept and one.kept.run["size"] == size] for size in sizes}
    yield from _table("of these, by size", by_size)
    ours = [one for one in every if one.claim.source == "ours"]
    restated = [one for one in every if one.claim.source != "ours" and one.claim.restates]
    yield from _table("counted apart", {"claims of ours": ours, "claims that restate another": restated})


_BOUNDS: Mapping[str, Callable[[Answered], bool]] = {
    "the bound is printed": lambda one: one.claim.bound == "printed",
    "an order, without a bound": lambda one: not one.claim.has_bound,
    "the bound is ours": lambda one: one.claim.has_bound and one.claim.bound != "printed",
}


def _of(every: Sequence[Answered], title: str) -> list[Answered]:
    return [one for one in every if one.title == title]


def _table(heading: str, rows: Mapping[str, Sequence[Answered]], total: Sequence[Answered] = ()) -> Iterator[str]:
    yield f"| {heading} | claims | {' | '.join(WORDS)} |"
    yield f"| --- |{' ---: |' * (len(WORDS) + 1)}"
    for label, those in {**rows, **({"all": total} if total else {})}.items():
        counts = Counter(one.word for one in those)
        yield f"| {label} | {counts.total()} | {' | '.join(str(counts[word]) for word in WORDS)} |"
    yield ""


def _asked_again(every: Sequence[Answered]) -> Iterator[str]:
    """How many of the claims that have an answer were asked again on another day, and in how many both agree."""
    pairs = [(one.word, answer_of(again)) for one in every if one.kept and (again := one.kept.body_again(one.claim))]
    answered = [first == again for first, again in pairs if first in _ANSWERS]
    if answered:
        asked = f"{len(answered)} claims that have an answer were asked again on another day"
        yield from (f"{asked}; {sum(answered)} had the same.", "")


def _each(every: Sequence[Answered]) -> Iterator[str]:
    yield "| claim | whose | answer | on a KVM host | what decides it | repeats | measured | command |"
    yield "| --- | --- | --- | --- | --- | ---: | --- | --- |"
    for one in every:
        if one.kept and one.body:
            yield _row(one, one.body, one.kept)
    yield ""


def _row(one: Answered, body: Mapping[str, Any], kept: Kept) -> str:
    """A claim, its answers, the comparison that decides it with its interval, and the run."""
    claim = one.claim
    repeats = max((figure["count"] for figure in body["evidence"] if figure["mean"] is not None), default=0)
    machine = kept.record["machine"]
    host = f"{machine['cpus']} x {machine['cpu']}, {format_bytes(machine['memory_bytes'])}"
    measured = f"{day_of(kept.record)}, {host}"
    if again := kept.body_again(claim):
        same = answer_of(again) == one.word
        measured = f"{measured}; on {day_of(kept.again or {})} {'the same' if same else answer_of(again)}"
    cells = (claim.say, _whose(claim), one.word, _on_kvm(one), _because(claim, body), repeats, measured)
    return f"| {' | '.join(map(str, cells))} | `{kept.command}` |"


def _because(claim: Claim, body: Mapping[str, Any]) -> str:
    """What decides the answer: the comparison that it is, or why there is none here."""
    if body["answer"] == NOT_HERE:
        return "; ".join((*body["because"], *(f"{OF_EMULATION}: {one}" for one in body["of_emulation"][:1])))
    deciding = next((one for one in body["comparisons"] if one["answer"] == body["answer"]), None)
    because = deciding["because"] if deciding else "; ".join(body["because"])
    words = would_take(claim, body) if body["answer"] == "cannot tell" else ""
    return f"{because}; {words}" if words else str(because)


def _whose(claim: Claim) -> str:
    """Whose the claim is, and its bound; what another one stands for is not counted."""
    whose = "ours" if claim.source == "ours" else "theirs, bound of ours" if claim.bound == "ours" else "theirs"
    return f"{whose}; restates another" if claim.restates else whose


def _on_kvm(one: Answered) -> str:
    """The answer on a host with KVM; whether one is to come where there is none here."""
    if one.kept and one.kept.run["accelerator"] != EMULATED:
        return one.word
    body = one.kept.on_kvm(one.claim) if one.kept else None
    if body is not None:
        return answer_of(body)
    return NOT_ASKED_YET if one.word == NOT_HERE and may_be_elsewhere(one.file, one.claim) else ""


def may_be_elsewhere(file: ScenarioFile, claim: Claim) -> bool:
    """Whether another host may answer it: none of its places is absent in the scenario itself."""
    axes = file.scenario.axes
    absent = {
        (name, value) for name, axis in axes.items() for value, point in axis.points.items() if point.absent is not None
    }
    return not any(absent & {*place_axes(place).items()} for place in every_place(claim))
