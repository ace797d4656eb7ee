"""Every claim and every finding of a shipped scenario has its place in the publication, or is marked as ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.experiments.page import published_names
from vmlab.model.printed import unit_factor
from vmlab.model.scenarios.reference import Claim, Reference, Unasked
from vmlab.plan.scenario_file.loading import load
from vmlab.telemetry.host.host_figures import HOST_FIGURES

SECTIONS = Path(__file__).parent / "published" / "sections.txt"


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
    reference = load(name).scenario.reference
    assert reference is not None
    return reference


def _said_in(reference: Reference) -> list[Claim | Unasked]:
    return [*reference.claims, *reference.unasked]


def _said() -> list[tuple[str, Claim | Unasked]]:
    return [(name, one) for name in published_names() for one in _said_in(_reference(name))]


def _lacking(title: str, said: Claim | Unasked) -> str:
    """What a claim or a finding of the publication of that title lacks, or nothing."""
    if isinstance(said, Claim) and said.source == "ours":
        return ""
    words = said.there if isinstance(said, Claim) else said.why
    if not re.search(r"\w+ \w+", words):
        return "what the publication says there" if isinstance(said, Claim) else "why it is not asked"
    if words == said.say:
        return "words other than those of the sentence itself"
    named = set(re.findall(r'"([^"]+)"', said.where))
    unknown = named - set(_sections()[title])
    return "a section" if not named else ", ".join(f"a section that is there, not {one}" for one in sorted(unknown))


@pytest.mark.parametrize(("name", "said"), _said(), ids=lambda one: getattr(one, "say", one))
def test_it_has_a_place_or_is_ours(name: str, said: Claim | Unasked) -> None:
    assert _lacking(_reference(name).title, said) == ""


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ({"where": ""}, "a section"),
        ({"where": " "}, "a section"),
        ({"where": '""'}, "a section"),
        ({"where": "somewhere"}, "a section"),
        ({"where": '" "'}, "a section that is there, not  "),
        ({"where": '"Memory Test"'}, "a section that is there, not Memory Test"),
        ({"there": ""}, "what the publication says there"),
        ({"there": " "}, "what the publication says there"),
        ({"there": "…"}, "what the publication says there"),
        ({"there": "With one thread each, both end together."}, "words other than those of the sentence itself"),
    ],
)
def test_empty_words_are_no_place(change: dict[str, str], lacking: str) -> None:
    whole = {
        "say": "With one thread each, both end together.",
        "where": '"Impact of CPU Priority Setting", table',
        "there": "One thread in each leaves no contention.",
        "less": [{"threads": 1}, {"threads": 4}],
    }
    title = _reference("cpu-priority").title
    assert _lacking(title, Claim.model_validate(whole)) == ""
    assert _lacking(title, Claim.model_validate({**whole, **change})) == lacking


def test_empty_words_are_no_reason() -> None:
    finding = Unasked(say="It is so.", where='"Memory Performance", table', why=" ")
    assert _lacking(_reference("cpu-priority").title, finding) == "why it is not asked"


@pytest.mark.parametrize("name", published_names())
def test_no_sentence_stands_twice_and_each_has_an_end(name: str) -> None:
    """Kept answers are found by the sentence."""
    said = [one.say for one in _said_in(_reference(name))]
    assert len(set(said)) == len(said)
    assert all(one.endswith(".") for one in said)


@pytest.mark.parametrize("name", published_names())
def test_it_says_what_differs_here_and_which_system_guests_have(name: str) -> None:
    here = _reference(name).here
    assert "image of Debian" in here
    assert "processor" in here and "disk" in here


def test_bounds_have_the_unit_of_what_they_are_a_bound_of() -> None:
    units = {f"host.{figure.name}": figure.unit for figure in HOST_FIGURES}
    claims = [one for _, one in _said() if isinstance(one, Claim) and one.unit]
    assert claims
    assert all(unit_factor(claim.unit, units[claim.metric]) is not None for claim in claims)
