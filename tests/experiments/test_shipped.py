"""Every shipped scenario is valid at every size, small at smoke, and has what its publication says in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from tests.experiments.page import published_names
from tests.experiments.records import shipped
from tests.experiments.run_all import ALTOGETHER, LONGEST
from tests.experiments.run_claims import is_met
from tests.store.stories import Story
from vmlab.analysis.comparison.repeats_needed import with_enough_repeats
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.table_layout import layout_of
from vmlab.model.scenarios.reference import Reference, place_axes
from vmlab.model.scenarios.table_words import METRICS
from vmlab.plan.estimate import freezing_seconds
from vmlab.plan.planning import make_plan, validate_all
from vmlab.plan.scenario_file.loading import ScenarioFile, shipped_names
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.store.reader import RunReader
from vmlab.telemetry.host.host_figures import host_figures
from vmlab.workloads.registry import kinds

# Scenarios are read once by each process, and tests of them in one, as that takes seconds.
pytestmark = pytest.mark.xdist_group("experiments")
MOST_SMOKE_CELLS = 10
HOST = HostFacts(2**36, 2**36, 2**40, 2, "tcg")
ANY = replace(HOST, cpus=8, memory_total_bytes=2**32, accelerator_guess="kvm")
"""A host that answers most claims."""
SCENARIOS = shipped_names()


@pytest.fixture(scope="module", params=SCENARIOS)
def file(request: pytest.FixtureRequest) -> ScenarioFile:
    return shipped(str(request.param))


@pytest.fixture(scope="module", params=published_names())
def published(request: pytest.FixtureRequest) -> ScenarioFile:
    return shipped(str(request.param))


def _reference(file: ScenarioFile) -> Reference:
    reference = file.scenario.reference
    assert reference is not None
    return reference


def test_the_experiments_are_all_there() -> None:
    wanted = """cpu-overhead cpu-priority memory-overhead memcpy-overhead memory-overbooking disk-overbooking
        system-overhead disk-matrix disk-allocation disk-shared network-classic tile tile-backing tile-memory
        query-replay jvm-overbooking jvm-members"""
    assert set(wanted.split()) <= set(published_names())
    assert published_names() == [name for name in SCENARIOS if shipped(name).scenario.reference is not None]


def test_every_size_is_valid_and_smoke_is_small(file: ScenarioFile) -> None:
    cells = validate_all(file).cells
    assert set(cells) - {"published"} == {"smoke", "demo", "full"}
    assert cells.get("published", cells["full"]) == cells["full"]
    assert 1 <= cells["smoke"] <= MOST_SMOKE_CELLS
    assert cells["smoke"] <= cells["demo"] <= cells["full"]


def test_smoke_cuts_axes_to_their_ends_and_to_what_claims_ask_about(file: ScenarioFile) -> None:
    """Of several values the first and the last show that it works; named points are no steps of one thing."""
    for name, axis in make_plan(file, Overrides(size="smoke"), HOST).scenario.axes.items():
        values = file.scenario.axes[name].values
        claims = file.scenario.claims
        asked = {place[name] for claim in claims for place in claim.places if name in place}
        asked |= {value for claim in claims for value in claim.each.get(name, ())}
        if not axis.points:
            assert set(axis.values) <= {values[0], values[-1], *asked}, name


def first_time(plan: Plan) -> float:
    """What freezing takes once, of a plan with guests that are not booted for each cell."""
    workloads = [one for cell in plan.cells if cell.guests and not plan.cold for one in cell.workloads]
    return freezing_seconds(workloads, HOST.accelerator_guess) if workloads else 0.0


def test_a_test_of_all_at_smoke_is_estimated_to_end_in_time() -> None:
    """Estimates are right within a factor of two. What needs a Ceph pool is run only where there is one."""
    asked = [make_plan(shipped(name), Overrides(size="smoke"), HOST) for name in SCENARIOS]
    plans = [plan for plan in asked if not plan.pools]
    seconds = [plan.seconds + first_time(plan) for plan in plans]
    assert sum(seconds) < 0.75 * ALTOGETHER
    assert 1.5 * max(seconds) < LONGEST


def test_a_publication_is_named_and_says_something(published: ScenarioFile) -> None:
    reference = _reference(published)
    assert reference.source
    assert reference.host
    assert reference.figures or reference.claims


def test_the_published_host_is_ordered_or_it_is_said_why_not(published: ScenarioFile) -> None:
    sizes, here = published.scenario.sizes, _reference(published).here
    assert ("published" in sizes) != ("so no size can limit" in here)
    if "published" in sizes:
        assert sizes["published"].keys() <= {"host", "allow"}
        host = make_plan(published, Overrides(size="published"), HOST).scenario.host
        assert host.cpus and host.memory_bytes
        assert "size `published`" in here


def test_names_of_figures_are_those_that_are_measured(published: ScenarioFile) -> None:
    """A name with a mistake in it would be read as a figure that nobody measured."""
    measured = set(chain.from_iterable(kinds()[entry.kind].metrics for entry in published.scenario.workloads.values()))
    known = {*measured, "wall_seconds", *(f"host.{figure.name}" for figure in host_figures())}
    reference, table = _reference(published), published.scenario.table
    assert table is not None
    named = {figure.metric for figure in reference.figures} | set(table.figures)
    for claim in reference.claims:
        places = {str(place.get("metric", claim.metric)) for place in claim.places}
        named |= set(map(str, claim.each[METRICS])) if METRICS in claim.each else places
    assert named <= known


def test_places_of_figures_name_one_cell(published: ScenarioFile) -> None:
    """A figure without a value for one of the axes would stand for several cells."""
    axes = {name for name, axis in published.scenario.axes.items() if len(axis.values) > 1}
    for figure in _reference(published).figures:
        assert axes <= set(figure.place), figure.where


def test_claims_name_one_cell_on_each_side(published: ScenarioFile) -> None:
    axes = {name for name, axis in published.scenario.axes.items() if len(axis.values) > 1}
    for claim in _reference(published).claims:
        for place in claim.places:
            assert axes <= {*claim.each, *place_axes(place)}, claim.say


def test_repeats_for_claims_take_every_place_that_a_claim_compares(published: ScenarioFile) -> None:
    """At the least size, whose own axes have the ends alone: its amounts stay, and nothing is left but what is absent.

    Without that, a claim about a middle value would be answered "cannot tell" however often the size is repeated.
    """
    claims = _reference(published).claims
    if not claims:
        pytest.skip("it has figures alone")
    small, full = (make_plan(published, Overrides(size=size), ANY) for size in ("smoke", "full"))
    asked = with_enough_repeats(Overrides(size="smoke", repeats="claims"), published.scenario)
    plan = make_plan(published, asked, ANY)
    here = [cell.axes for cell in plan.cells]
    for claim in claims:
        if claim.say not in plan.unanswerable:
            assert is_met(claim, here), claim.say
    assert plan.scenario.order == full.scenario.order
    assert plan.scenario.guests == small.scenario.guests
    assert plan.scenario.workloads == small.scenario.workloads


def test_every_bound_is_said_to_be_printed_or_ours(published: ScenarioFile) -> None:
    for claim in _reference(published).claims:
        assert (claim.bound is not None) == (claim.has_bound and claim.source == "publication"), claim.say
        assert "ours" not in claim.say


def test_a_claim_restates_one_that_there_is(published: ScenarioFile) -> None:
    for claim in _reference(published).claims:
        if claim.restates is not None and claim.restates.scenario:
            other = shipped(claim.restates.scenario)
            assert claim.restates.say in [one.say for one in other.scenario.claims], claim.say
            assert _reference(other).title == _reference(published).title


def test_a_size_answers_each_claim_that_the_largest_one_answers(published: ScenarioFile) -> None:
    """Amounts leave a claim open at small sizes alone: at size full none of them is too small."""
    plan = make_plan(published, Overrides(size="full"), ANY)
    assert not [why for why in plan.unanswerable.values() if any("too small" in one for one in why.because)]


def test_setups_of_a_shared_disk_are_compared_with_none_and_not_jobs_with_the_first(tmp_path: Path) -> None:
    plan = make_plan(shipped("disk-shared"), Overrides(size="smoke"), HOST)
    with RunReader(Story(tmp_path / "run.sqlite").begin_plan(plan).end()) as reader:
        layout = layout_of(run_document(reader))
    assert (layout.baseline, layout.relative) == ({"setup": "none"}, "difference")
