"""docs/evidence/statistics.md on real comparisons: made from the readings, and within what was promised."""

from __future__ import annotations

import pytest

from tests.analysis.alarms_page import (
    PAGE,
    alarm,
    alarming,
    claimed,
    control_sides,
    current,
    excesses,
    family,
    kept,
    pooled,
    relabelled,
)
from vmlab.analysis.statistics.sample_size import readings_needed

# Both that relabel readings do so in one process, which has the shares of the first for the second.
pytestmark = pytest.mark.xdist_group("alarms")


@pytest.mark.exhaustive
def test_the_page_has_the_table_of_the_readings_that_are_kept() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == current(page), "run `python -m tests.analysis.alarms_page`"


def test_like_with_like_is_seldom_called_different() -> None:
    found = kept()
    comparisons = list(control_sides(found))
    assert len(comparisons) >= 20
    assert all(
        len(values) == 8 for _, figures, *_ in comparisons for sides in figures.values() for values in sides.values()
    )
    assert all(readings_needed(len(figures)) <= 8 for _, figures, *_ in comparisons)
    assert len(alarming(found)) <= 3
    # Chance alone lets a lab that never alarms pass the line above; relabellings show that the test can alarm.
    assert relabelled(12, 1) == pytest.approx(0.05, abs=0.01)
    assert 0.01 < relabelled(12) <= 0.06


def test_a_relabelling_alarms_where_a_table_of_it_proves_something() -> None:
    pairs = pooled(kept(), 8)[0]
    said = []
    for swapped in range(2**7):
        swaps = [swapped >> place & 1 for place in range(8)]
        other = [[(b, a) if swap else (a, b) for swap, (a, b) in zip(swaps, one, strict=True)] for one in pairs]
        said.append(any(one.proven for one in family(other)))
    assert [alarm(excesses(pairs), swapped) for swapped in range(2**7)] == said
    assert 0 < sum(said) < len(said)


def test_a_slowdown_of_twice_the_detectable_size_is_found_and_one_below_the_noise_is_not_claimed() -> None:
    found = kept()
    parts = (found["earlier"], found)
    assert found["slower_percent"]["twice"] == pytest.approx(2 * found["detectable_percent"])
    of = sum(len(part["slowed"]) for part in parts)
    assert of >= 10
    assert sum(len(claimed(part["slowed"], "twice")) for part in parts) >= 0.9 * of
    assert sum(len(claimed(part["slowed"], "quarter")) for part in parts) <= 1
