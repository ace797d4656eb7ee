"""The knee of throughput over tiles: where it is, and that nothing is claimed that the repeats do not show."""

from __future__ import annotations

import random

import pytest

from vmlab.analysis.tiles.knee import (
    NO_REPEAT,
    ONE_REPEAT,
    TOO_FEW,
    UNDECIDED,
    Knee,
    KneeVerdict,
    Step,
    knee_of,
)
from vmlab.model.jsonable import jsonable

CLEAR = (52.0, 50.5, 49.0, 51.0, 50.0, 48.0)
LITTLE = (4.0, 5.5, 3.0, 6.0, 5.0, 4.5)
AROUND = (4.0, 15.5, 9.0, 11.0, 6.0, 14.5)


def _known(knee: Knee) -> tuple[str, int | None, int | None]:
    return str(knee.verdict), knee.tiles, knee.up_to


def test_it_is_after_the_last_tile_that_adds_enough() -> None:
    knee = knee_of([Step(1, 2, CLEAR), Step(2, 3, LITTLE)])
    assert _known(knee) == ("reached", 2, 2)
    assert [step.enough for step in knee.steps] == [True, False]
    low, high = knee.steps[1].interval or (0.0, 0.0)
    # Six repeats: all of the 21 Walsh averages are in the interval of 5 %.
    assert (low, high) == (3.0, 6.0) and knee.steps[1].gain == 4.75


def test_it_is_not_reached_where_every_tile_adds_enough() -> None:
    assert _known(knee_of([Step(1, 2, CLEAR), Step(2, 3, CLEAR)])) == ("not reached", None, None)
    assert _known(knee_of([Step(1, 2, CLEAR), Step(2, 3, LITTLE)], share_percent=2)) == ("not reached", None, None)
    assert _known(knee_of([Step(1, 2, CLEAR), Step(2, 3, LITTLE)], share_percent=60)) == ("reached", 1, 1)


@pytest.mark.parametrize(
    ("gains", "obstacle", "because", "seen"),
    [
        (LITTLE[:1], "", ONE_REPEAT, 2),
        (LITTLE[:5], "", TOO_FEW, 2),
        (AROUND, "", UNDECIDED, None),
        ((), "", NO_REPEAT, None),
        (LITTLE, "the tiles did not run together", "the tiles did not run together", 2),
    ],
)
def test_what_the_repeats_do_not_show_cannot_be_told(
    gains: tuple[float, ...], obstacle: str, because: str, seen: int | None
) -> None:
    knee = knee_of([Step(1, 2, CLEAR), Step(2, 3, gains, obstacle)])
    assert _known(knee) == ("cannot tell", None, None)
    assert knee.decided is not None and (knee.decided.before, knee.decided.because) == (2, because)
    assert knee.seen == seen


def test_of_repeats_that_were_added_it_takes_more() -> None:
    first = Step(1, 2, CLEAR, level_divisor=2)
    knee = knee_of([first])
    assert knee_of([Step(1, 2, CLEAR)]).verdict == KneeVerdict.NOT_REACHED
    assert knee.decided is not None
    assert (knee.verdict, knee.decided.because, knee.decided.needed) == (KneeVerdict.CANNOT_TELL, TOO_FEW, 7)


def test_nothing_is_said_of_steps_behind_one_that_is_not_known() -> None:
    assert _known(knee_of([Step(1, 2, AROUND), Step(2, 3, LITTLE)])) == ("cannot tell", None, None)


def test_of_a_step_that_skips_tiles_the_knee_is_somewhere_within() -> None:
    assert _known(knee_of([Step(1, 3, CLEAR), Step(3, 5, LITTLE)])) == ("reached", 3, 4)


def test_json_has_the_steps_and_null_for_what_is_not_known() -> None:
    body = jsonable(knee_of([Step(1, 2, LITTLE[:1])]))
    assert (body["verdict"], body["after_tiles"], body["seen_after_tiles"]) == ("cannot tell", None, 1)
    assert body["readings_needed"] == 6 and body["because"] == ONE_REPEAT
    assert body["steps"] == [
        {
            "from_tiles": 1,
            "to_tiles": 2,
            "gain_percent": 4.0,
            "interval_percent": None,
            "readings": 1,
            "enough": None,
            "because": ONE_REPEAT,
        }
    ]


def _drawn(draw: random.Random, truth: list[float], repeats: int, spread: float) -> list[Step]:
    return [
        Step(tiles, tiles + 1, tuple(draw.gauss(gain, spread) for _ in range(repeats)))
        for tiles, gain in enumerate(truth, start=1)
    ]


def test_properties_of_any_readings() -> None:
    draw = random.Random(5)
    seen = set()
    for _ in range(300):
        truth = [draw.choice([60.0, 30.0, 12.0, 8.0, 1.0]) for _ in range(3)]
        steps = _drawn(draw, truth, draw.randint(1, 9), draw.choice([0.5, 3.0]))
        knee = knee_of(steps)
        seen.add(knee.verdict)
        shuffled = [Step(s.before, s.after, tuple(draw.sample(s.gains, len(s.gains)))) for s in steps]
        assert _known(knee_of(shuffled)) == _known(knee), "the order of the repeats does not matter"
        if knee.verdict == KneeVerdict.REACHED:
            stricter = knee_of(steps, share_percent=15)
            assert stricter.tiles is None or stricter.tiles <= (knee.tiles or 0), "asking for more moves it down"
            assert stricter.verdict != KneeVerdict.NOT_REACHED
        if len(steps[0].gains) < 6:
            assert knee.verdict == KneeVerdict.CANNOT_TELL
    assert seen == set(KneeVerdict)


def test_wrong_knees_are_as_rare_as_promised() -> None:
    """Three steps whose true gains are a hair above the limit, at it, and far below: 5 %, and 3 standard errors."""
    draw, tries = random.Random(9), 600
    for truth in ([10.001, 50.0], [50.0, 10.001, 50.0], [9.999, 50.0], [14.0, 12.0, 10.001, 10.001]):
        right = next((tiles for tiles, gain in enumerate(truth, start=1) if gain < 10), None)
        wrong = 0
        for _ in range(tries):
            knee = knee_of(_drawn(draw, truth, 8, 4.0))
            told = knee.verdict != KneeVerdict.CANNOT_TELL
            wrong += told and knee.tiles != right
        assert wrong / tries <= 0.05 + 3 * (0.05 * 0.95 / tries) ** 0.5
