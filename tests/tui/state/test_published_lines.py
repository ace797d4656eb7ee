"""What was published, as lines for the room that there is."""

from __future__ import annotations

import pytest

from vmlab.model.scenarios.reference import Reference
from vmlab.plan.scenario_file.loading import load
from vmlab.tui.state.load_map import published_lines


@pytest.fixture(scope="module")
def reference() -> Reference:
    known = load("tile").scenario.reference
    assert known is not None
    return known


def texts(reference: Reference, width: int, room: int) -> list[str]:
    return ["".join(text for text, _ in line) for line in published_lines(reference, width, room)]


def claims(reference: Reference) -> list[str]:
    return list(dict.fromkeys(one.there or one.say for one in reference.claims if one.source == "publication"))


def test_all_claims_and_what_is_different_stand_there_where_there_is_room(reference: Reference) -> None:
    lines = texts(reference, 170, 60)
    joined = " ".join(line.strip() for line in lines)
    assert all(" ".join(one.split()) in joined for one in claims(reference))
    assert lines[0] == "Published" and "Different here" in lines
    assert " ".join(reference.here.split()) in joined
    assert not any(line.endswith("more claims") for line in lines)


@pytest.mark.parametrize("room", [0, 9, 12, 15, 30])
def test_they_take_no_more_than_the_room_but_for_the_first_claims_and_count_the_others(
    reference: Reference, room: int
) -> None:
    lines = texts(reference, 120, room)
    shown = sum(line.startswith("- ") for line in lines)
    assert shown >= 4 and (len(lines) <= room or shown == 4)
    left = len(claims(reference)) - shown
    assert (f"  and {left} more claims" in lines) is (left > 0)
    assert max(map(len, lines)) <= 120
