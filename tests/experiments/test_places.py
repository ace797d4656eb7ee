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


@pytest.mark.parametrize(("name", "said"), _said(), ids=lambda one: getattr(one, "say", one))
def test_it_has_a_place_or_is_ours(name: str, said: Claim | Unasked) -> None:
    if isinstance(said, Claim) and said.source == "ours":
        return
    assert said.where, f"{name}: where does the publication say it?"
    assert not isinstance(said, Claim) or said.there, f"{name}: what does the publication say there?"
    named = re.findall(r'"([^"]+)"', said.where)
    assert named, f"{name}: where names no section"
    known = _sections()[_reference(name).title]
    assert set(named) <= set(known), name


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
