"""The page on experiments and the list of scenarios are what their generator makes, and it leaves nothing out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from tests.compatibility.promised import lost
from tests.experiments.answers import NOT_DELIVERED, WORDS, answer_of
from tests.experiments.believed import SENTENCES, believed
from tests.experiments.page import (
    FOLDER,
    LIST,
    NOT_ASKED,
    NOT_RUN,
    PAGE,
    Records,
    answer_of_claim,
    answered,
    asked_again,
    claimed_results,
    listed,
    on_kvm,
    pages,
    publications,
    published_names,
    results,
)
from tests.experiments.records import (
    AGAIN,
    CLAIMED,
    KVM,
    answers_in,
    archive_of,
    day_of,
    kept,
    of_claims,
    record_of,
    repeats_of,
    shipped,
)
from tests.experiments.told import tell
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.claims import NOT_HERE
from vmlab.analysis.reference.published import BesideReference, beside_reference
from vmlab.model.jsonable import jsonable
from vmlab.model.run import EMULATED
from vmlab.plan.scenario_file.loading import shipped_names
from vmlab.plan.terms import ForClaims
from vmlab.store.reader import RunReader

pytestmark = pytest.mark.xdist_group("experiments")
WRITE = "run `python -m tests.experiments.page`"


def _recorded(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], BesideReference]:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    with RunReader(tell(name)) as reader:
        document, beside = run_document(reader), beside_reference(reader)
    document.run.host["memory_bytes"] = 2**33
    record: dict[str, Any] = json.loads(json.dumps(record_of(jsonable(document), jsonable(beside))))
    return record, beside


def _claimed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, repeats: ForClaims) -> dict[str, Any]:
    """The record of a told run with the repeats that claims take."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    with RunReader(tell(name, claims=repeats)) as reader:
        record = record_of(jsonable(run_document(reader)), jsonable(beside_reference(reader)))
    record["machine"]["memory_bytes"] = 2**33
    found: dict[str, Any] = json.loads(json.dumps(of_claims(record)))
    return found


def _section(text: str, name: str) -> str:
    return re.split(r"\n##? ", text.split(f"\n## {name}\n")[1])[0]


def page(*records: Records) -> str:
    """All pages, one after the other, the summary first."""
    return "".join(pages(*records).values())


def test_the_pages_are_what_their_generator_makes() -> None:
    made = pages(results(), claimed_results(), asked_again(), on_kvm())
    assert {file: file.read_text(encoding="utf-8") for file in (PAGE, *FOLDER.glob("*.md"))} == made, WRITE


def test_the_summary_is_two_screens_and_leads_to_every_page() -> None:
    made = pages(results(), claimed_results(), asked_again(), on_kvm())
    text = "\n".join(line for line in made[PAGE].splitlines() if not line.startswith("|"))
    assert len(text.split()) < 600
    assert {PAGE.parent / link for link in re.findall(r"\((experiments/[^)]+)\)", text)} == made.keys() - {PAGE}


def test_the_list_has_the_scenarios_as_they_describe_themselves() -> None:
    text = LIST.read_text(encoding="utf-8")
    assert text == listed(text), WRITE
    for name in shipped_names():
        assert f"| `{name}` | {shipped(name).scenario.summary} |" in text


def test_every_scenario_has_its_section_with_all_that_is_printed() -> None:
    text = page({}, {})
    assert sorted(set(re.findall(r"^## ([a-z0-9-]+)$", text, re.MULTILINE))) == shipped_names()
    for name in published_names():
        section, scenario = _section(text, name), shipped(name).scenario
        assert scenario.reference is not None
        assert scenario.summary in section
        assert all(figure.value in section for figure in scenario.reference.figures)
        assert all(f"| {claim.say} | " in section for claim in scenario.reference.claims)
        assert f"Ours: {NOT_RUN}." in section
        assert section.count(f"| {NOT_RUN} |") == len(scenario.reference.claims)
        assert all(claim.where in section and claim.there in section for claim in scenario.reference.claims)
        assert all(claim.contradicted in section for claim in scenario.reference.claims)
        words = " ".join(section.split())
        assert all(f"- {one.say} ({one.where}.) Not asked: {one.why}." in words for one in scenario.reference.unasked)


def test_a_claim_that_is_newer_than_the_kept_run_was_not_asked_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, _ = _recorded("memcpy-overhead", tmp_path, monkeypatch)
    record["beside"]["claims"][0]["say"] = "It was once said in other words."
    section = _section(page({"memcpy-overhead": record}, {}), "memcpy-overhead")
    assert section.count(f"| {NOT_ASKED} |") == section.count("(size smoke, tcg) |") == 1


def test_a_kept_result_stands_beside_with_accelerator_and_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, _ = _recorded("memcpy-overhead", tmp_path, monkeypatch)
    section = _section(page({"memcpy-overhead": record}, {}), "memcpy-overhead")
    assert "theirs" in section and "ours" in section and NOT_RUN not in section
    assert "Ours: size smoke, accelerator tcg, 2026-11-21, 2 x AMD EPYC 7302P 16-Core Processor, 8 GiB" in section
    assert "[JSON](memcpy-overhead.json)" in section
    assert "Amounts differ" in section
    assert section.count("(size smoke, tcg) |") == 2


def test_the_page_begins_with_the_answers_counted_by_publication_for_each_accelerator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of runs with enough repeats, the answers are those of `vmlab show`, with their intervals."""
    repeats: dict[str, ForClaims] = {
        "memcpy-overhead": "claims",
        "tile-backing": "claims-once",
        "query-replay": "claims",
    }
    records = {name: _claimed(name, tmp_path, monkeypatch, word) for name, word in repeats.items()}
    for name in ("memcpy-overhead", "query-replay"):
        records[name]["beside"]["run"]["accelerator"] = "tcg"
    top, *others = pages({}, records).values()
    kvm, tcg = (
        "".join(part for text in (top, *others) for part in re.split(r"\n##", text) if part.startswith(f"# {head}\n"))
        for head in ("KVM", "Emulated guests (tcg)")
    )
    assert top.index("\n### KVM\n") < top.index("\n### Emulated guests (tcg)\n")
    every = [claim for name in published_names() for claim in shipped(name).scenario.claims]
    for part, names in ((kvm, ["tile-backing"]), (tcg, ["memcpy-overhead", "query-replay"])):
        bodies = [body for name in names for body in records[name]["beside"]["claims"]]
        for body in bodies:
            assert re.search(rf"^\| {re.escape(body['say'])} \| [^|]+ \| {answer_of(body)} \| ", part, re.MULTILINE)
        counted = _counted(part)
        own = [body for body in bodies if body["source"] == "publication" and not body["restates"]]
        asked = [answer_of(body) for body in own]
        assert counted["all"] == _counts(asked, sum(one.source != "ours" and not one.restates for one in every))
        printed, order, ours = (counted[words] for words in _BOUNDS)
        assert [sum(three) for three in zip(printed, order, ours, strict=True)] == counted["all"]
        assert counted["size smoke"] == _counts(asked, len(asked))
        words = [answer_of(body) for body in bodies if body["source"] == "ours"]
        assert counted["claims of ours"] == _counts(words, sum(one.source == "ours" for one in every))
        for name in names:
            command = f"`vmlab run {name} --size smoke --repeats {repeats[name]}`"
            assert f"2 x AMD EPYC 7302P 16-Core Processor, 8 GiB | {command} |" in part
    assert NOT_HERE in [answer_of(body) for body in records["query-replay"]["beside"]["claims"]]
    (first, *_) = records["memcpy-overhead"]["beside"]["claims"]
    assert first["answer"] == "not" and first["comparisons"][0]["difference"]["interval_percent"] is not None
    assert f"| {first['comparisons'][0]['because']} | 14 | 2026-11-21, " in tcg


_BOUNDS = ("the bound is printed", "an order, without a bound", "the bound is ours")


def _counted(part: str) -> dict[str, list[int]]:
    """The rows of the tables of counts, by their heads."""
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if re.search(r" \| \d+ \|$", line)]
    return {head: list(map(int, counts)) for head, *counts in rows}


def _counts(words: list[str], claims: int) -> list[int]:
    found = [words.count(word) for word in WORDS[:-1]]
    return [claims, *found, claims - sum(found)]


def test_the_second_column_has_the_answers_of_a_host_with_kvm_that_is_not_emulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = _claimed("memcpy-overhead", tmp_path, monkeypatch, "claims")
    here = json.loads(json.dumps(there))
    here["beside"]["run"]["accelerator"] = "tcg"
    for body in here["beside"]["claims"]:
        body.update(answer=NOT_HERE, because=["it compares guests with the host"], of_emulation=["the guest is slower"])
    records = {"memcpy-overhead": here}
    for virtualization, word in (("none", "not reproduced"), ("qemu", "not asked yet")):
        there["machine"]["virtualization"] = virtualization
        top = page({}, records, {}, {"memcpy-overhead": there})
        because = "it compares guests with the host; of emulation: the guest is slower"
        assert top.count(f" | {NOT_HERE} | {word} | {because} | ") == 2
        assert ("\n### KVM\n" in top) == (virtualization == "none")


def test_what_was_asked_on_another_day_too_says_whether_it_had_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _claimed("memcpy-overhead", tmp_path, monkeypatch, "claims")
    again = json.loads(json.dumps(first))
    again["beside"]["run"]["started"] = "2026-11-23T09:00:00.000+00:00"
    again["beside"]["claims"][1]["answer"] = "cannot tell"
    assert [one["answer"] for one in first["beside"]["claims"]] == ["not", "not"]
    top = page({}, {"memcpy-overhead": first}, {"memcpy-overhead": again})
    assert "2 claims that have an answer were asked again on another day; 1 had the same." in top
    host = "2026-11-21, 2 x AMD EPYC 7302P 16-Core Processor, 8 GiB"
    assert top.count(f"{host}; on 2026-11-23 the same |") == top.count(f"{host}; on 2026-11-23 cannot tell |") == 1
    assert "asked again on another day" not in page({}, {"memcpy-overhead": first})


def test_figures_from_emulated_guests_say_so_and_those_of_the_host_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, beside = _recorded("cpu-overhead", tmp_path, monkeypatch)
    section = _section(page({"cpu-overhead": record}, {}), "cpu-overhead")
    (host,) = re.findall(r"^Node, normal bootup +85\.3440(.*)$", section, re.MULTILINE)
    (guest,) = re.findall(r"^VM, normal bootup +85\.7055(.*)$", section, re.MULTILINE)
    assert EMULATED not in host and EMULATED in guest
    assert answered(beside.reference, record) == beside.figures


def test_charts_without_numbers_have_our_own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, _ = _recorded("tile", tmp_path, monkeypatch)
    section = _section(page({"tile": record}, {}), "tile")
    assert "tiles 1, run time (s)\n" in section
    assert re.search(r"^web +6\.10 tcg +7\.10 tcg \(\+16\.4 %\)$", section, re.MULTILINE)


def test_rows_that_no_publication_has_stand_below_its_own_and_bare_metal_is_not_emulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, _ = _recorded("query-replay", tmp_path, monkeypatch)
    section = _section(page({"query-replay": record}, {}), "query-replay")
    _, below = section.split("Rows of ours, without published values:")
    table = below.split("```")[1]
    host, one, guest = (
        re.findall(rf"^{row} .*$", table, re.MULTILINE) for row in ("bare-metal-2", "bare-metal-1", "vm-2")
    )
    assert len(host) == len(one) == len(guest) == 1
    assert EMULATED not in host[0] + one[0] and EMULATED in guest[0]
    assert not re.search(r"^(vm|vm-8|bare-metal|bare-metal-8t) ", table, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(results()))
def test_rows_without_cells_have_the_reason_of_the_run_that_is_kept(name: str) -> None:
    record = kept(name)
    assert record is not None
    section = " ".join(_section(page({name: record}, {}), name).split())
    for row in (row for table in record["beside"]["tables"] for row in table["rows"] if row["absent"] is not None):
        (value,) = row["head"].values()
        assert re.search(rf"[ ,]{value}[ ,][^:]*absent: {re.escape(row['absent'])}", section)


def test_each_publication_has_three_sentences_whose_answers_are_those_of_today() -> None:
    """A sentence whose claim has another answer by now is to be written anew, and so is one on a claim that is gone."""
    sentences = believed()
    assert {*sentences} == {*publications()}
    for title, those in sentences.items():
        assert len(those) == SENTENCES and all(one.say.endswith(".") for one in those), title
        for ground in (ground for one in those for ground in one.rests_on):
            assert ground.scenario in [one.scenario.name for one in publications()[title]]
            assert ground.claim in [claim.say for claim in shipped(ground.scenario).scenario.claims], ground
            assert answer_of_claim(ground.scenario, ground.claim) == ground.answer, ground


MOST_ARCHIVED = 5 * 2**20
"""Bytes of one archive: twenty of them stay small beside the repository."""


@pytest.mark.parametrize("name", sorted(asked_again()))
def test_what_was_asked_on_another_day_was_asked_the_same(name: str) -> None:
    first, again = kept(name, CLAIMED), kept(name, AGAIN)
    assert first and again and day_of(first) != day_of(again)
    assert (first["beside"]["run"]["size"], repeats_of(first)) == (again["beside"]["run"]["size"], repeats_of(again))


def _archived() -> Iterator[ParameterSet]:
    for folder, names in ((CLAIMED, claimed_results()), (AGAIN, asked_again()), (KVM, on_kvm())):
        for name in names:
            is_large = archive_of(name, folder).stat().st_size > 2**20
            # Each takes seconds, and needs no other scenario.
            group = pytest.mark.xdist_group(f"archives of {name}")
            yield pytest.param(folder, name, marks=[group, pytest.mark.exhaustive] if is_large else group)


@pytest.mark.parametrize(("folder", "name"), [*_archived()])
def test_each_run_behind_the_page_opens_and_answers_what_the_page_says(
    folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    record, archive = kept(name, folder), archive_of(name, folder)
    assert record is not None and archive.stat().st_size <= MOST_ARCHIVED
    # Keys that are newer than the record are no other answer.
    answers = answers_in(archive, shipped(name).scenario.reference)
    assert list(lost(record["beside"]["claims"], answers)) == []


def test_no_answer_rests_on_what_emulation_costs_and_no_sentence_on_a_claim_without_an_answer() -> None:
    """Of emulated guests none is compared with the host: such claims have no answer, whatever was measured."""
    for name, record in claimed_results().items():
        host = [*record["host_cells"]]
        for body in record["beside"]["claims"]:
            sides = {_is_of(host, one["place"]) for one in body["evidence"] if one["cells"]}
            if record["beside"]["run"]["accelerator"] == EMULATED and len(sides) > 1:
                assert body["answer"] == NOT_HERE, (name, body["say"])
    grounds = [ground for those in believed().values() for one in those for ground in one.rests_on]
    assert not [one for one in grounds if one.answer in (NOT_DELIVERED, NOT_HERE)]


def _is_of(host: list[dict[str, Any]], place: dict[str, Any]) -> bool:
    return any(axes.items() <= place.items() for axes in host)


@pytest.mark.parametrize("name", sorted(results()))
def test_what_was_kept_names_no_host_and_is_of_this_scenario(name: str) -> None:
    record = kept(name)
    assert record is not None
    assert "hostname" not in json.dumps(record)
    assert record["beside"]["scenario"] == name
    assert record["beside"]["run"]["outcome"] == "passed"
    assert {"cpu", "cpus", "memory_bytes", "kernel", "qemu", "libvirt"} <= record["machine"].keys()
