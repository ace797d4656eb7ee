"""Every claim and every finding of a shipped scenario has its place in the publication, or is marked as ours."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.experiments.page import published_names
from tests.experiments.records import shipped
from vmlab.model.scenarios.reference import Claim, Reference, Unasked, unit_factor
from vmlab.telemetry.host.host_figures import host_figures

pytestmark = pytest.mark.xdist_group("experiments")
SECTIONS = Path(__file__).parent / "published" / "sections.txt"
_SECTION = re.compile(r'"([^"]*)"')
_WORD = re.compile(r"\w")
_PLACE = '"Test", first paragraph'


def _sections() -> dict[str, list[str]]:
    """The sections of each publication, by its title."""
    found: dict[str, list[str]] = {}
    lines = SECTIONS.read_text(encoding="utf-8").splitlines()
    for line in (line for line in lines if not line.startswith("#")):
        if line.startswith("  "):
            next(reversed(found.values())).append(line.strip())
        else:
            found[line] = []
    return found


def _reference(name: str) -> Reference:
    reference = shipped(name).scenario.reference
    assert reference is not None
    return reference


def _said_in(reference: Reference) -> list[Claim | Unasked]:
    return [*reference.claims, *reference.unasked]


def _lacks(said: Claim | Unasked, known: Collection[str]) -> str:
    """What a claim or finding lacks to be found in a publication with these sections; empty if nothing."""
    if isinstance(said, Claim) and said.source == "ours":
        return ""
    named = _SECTION.findall(said.where)
    if not named:
        return "a section in quotation marks"
    if unknown := sorted(set(named) - set(known)):
        return f"a section that there is, not {unknown[0]}"
    if not _WORD.search(_SECTION.sub("", said.where)):
        return "the place within the section"
    told = said.there if isinstance(said, Claim) else said.why
    return "" if _WORD.search(told) else "what the publication says there, or why it is not asked"


@pytest.mark.parametrize("name", published_names())
def test_each_has_a_place_or_is_ours(name: str) -> None:
    reference = _reference(name)
    sections = _sections()[reference.title]
    assert {one.say: lacks for one in _said_in(reference) if (lacks := _lacks(one, sections))} == {}


@pytest.mark.parametrize("name", published_names())
def test_each_publication_says_something_that_is_not_ours(name: str) -> None:
    assert any(isinstance(said, Unasked) or said.source == "publication" for said in _said_in(_reference(name)))


@pytest.mark.parametrize(
    "where", ["", " ", '""', '" "', "first paragraph", '"Another section", table', '"Test", ', '"Test"']
)
def test_what_is_no_place_is_none(where: str) -> None:
    assert _lacks(_claim(where=where), ["Test"])
    assert _lacks(Unasked(say="It is so.", where=where or " ", why="it cannot be seen"), ["Test"])


@pytest.mark.parametrize("told", ["", " ", "\n", "."])
def test_a_place_alone_does_not_say_what_is_there(told: str) -> None:
    assert _lacks(_claim(there=told), ["Test"])
    assert _lacks(Unasked(say="It is so.", where=_PLACE, why=told or " "), ["Test"])


def test_a_place_or_the_mark_is_enough() -> None:
    assert _lacks(_claim(), ["Test"]) == ""
    assert _lacks(_claim(source="ours", where="", there=""), ["Test"]) == ""


def _claim(**fields: str) -> Claim:
    two = ({"cache": "none"}, {"cache": "writeback"})
    return Claim.model_validate({"say": "It is so.", "where": _PLACE, "there": "It is.", "less": two, **fields})


@pytest.mark.parametrize("name", published_names())
def test_no_sentence_stands_twice_and_each_has_an_end(name: str) -> None:
    """Kept answers are found by the sentence."""
    said = [one.say for one in _said_in(_reference(name))]
    assert len(set(said)) == len(said)
    assert all(one.endswith(".") for one in said)


@pytest.mark.parametrize("name", published_names())
def test_it_says_what_differs_here_and_which_system_guests_have(name: str) -> None:
    here = _reference(name).here
    assert "Debian image" in here
    assert "processor" in here and "disk" in here


def test_bounds_have_the_unit_of_what_they_are_a_bound_of() -> None:
    units = {f"host.{figure.name}": figure.unit for figure in host_figures()}
    every = (one for name in published_names() for one in _said_in(_reference(name)))
    claims = [one for one in every if isinstance(one, Claim) and one.unit]
    assert claims
    assert all(unit_factor(claim.unit, units[claim.metric]) is not None for claim in claims)
