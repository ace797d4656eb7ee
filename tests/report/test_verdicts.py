"""What is said of a difference, in each case, as a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vmlab.analysis.comparison.difference import NO_DIFFERENCE, Difference, Sides, differences
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.statistics.descriptive import spread
from vmlab.report.verdicts import difference_notes, long_text, outlier_notes, sentence

NOISE = (0.2, -0.5, 0.7, -0.1, 0.3, -0.6, 0.1, -0.3)


def _figure(values: Sequence[float], run: str = "") -> Figure:
    readings = tuple(OneReading(value, repeat, run) for repeat, value in enumerate(values, 1))
    return Figure("passed", spread(values), 0, readings)


def _of(before: Sequence[float], after: Sequence[float], figures: int = 1, *runs: str) -> Difference:
    """The difference of the first of so many equal figures."""
    one, other = runs or ("", "")
    return differences([Sides(_figure(before, one), _figure(after, other), False)] * figures)[0]


SLOW = [10 + noise for noise in NOISE]
QUICK = [5 + 0.3 * noise for noise in reversed(NOISE)]
SAME = [10 + noise for noise in reversed(NOISE)]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (NO_DIFFERENCE, "not compared: a side has no value that passed"),
        (
            _of(SLOW, QUICK, 4),
            "difference proven: -49.9 % (-55.0 to -44.6) at 98.75 % confidence, p 0.031 corrected for 4 metrics, "
            "8 repeats",
        ),
        (
            _of([0.0] * 8, [1.0] * 8),
            "difference proven: at 95 % confidence, p 0.0078, 8 repeats",
        ),
        (
            _of(SLOW[:7], QUICK[:7], 4),
            "too few measurements: 7 repeats; to prove a difference in one of 4 metrics takes 8 repeats at least",
        ),
        (
            _of([10.0], [20.0]),
            "one measurement each, no spread known; to prove a difference takes 6 repeats at least",
        ),
        (
            _of(SLOW, QUICK, 1, "before", "after"),
            "one run a side, whose repeats share all that differs from run to run; to prove a difference takes 4 runs "
            "a side at least",
        ),
    ],
)
def test_the_sentence(found: Difference, said: str) -> None:
    assert sentence(found) == said


def test_what_is_not_proven_says_what_these_readings_find_and_how_many_more_it_takes() -> None:
    words = sentence(_of(SLOW, SAME)).split("; ")
    assert words[0].startswith("no difference proven: ") and words[0].endswith(" at 95 % confidence, p 1, 8 repeats")
    assert words[1].startswith("8 repeats find ") and words[1].endswith(" % or more in four of five cases")
    assert words[2].startswith("one as large as seen takes ")


def test_notes_name_figures_where_the_reasons_differ() -> None:
    named = [("web", _of([10.0], [20.0], 3)), ("mail", _of(SLOW[:2], QUICK[:2], 4)), ("disk", _of(SLOW[:2], QUICK[:2]))]
    assert list(difference_notes(named)) == [
        "? web: one measurement each, no spread known; "
        "to prove a difference in one of 3 metrics takes 7 repeats at least",
        "? mail: too few measurements: 2 repeats; to prove a difference in one of 4 metrics takes 8 repeats at least",
        "? disk: too few measurements: 2 repeats; to prove a difference takes 6 repeats at least",
    ]


def test_equal_readings_are_said_to_differ_by_nothing_and_no_more() -> None:
    equal = _of([300.0] * 8, [300.0] * 8)
    assert sentence(equal) == "no difference proven: +0.0 % (+0.0 to +0.0) at 95 % confidence, p 1, 8 repeats"
    assert [note.split(":")[0] for note in difference_notes([("files", equal)])] == ["in brackets"]


def test_a_reading_far_from_the_others_is_named_and_counts() -> None:
    disturbed = [*SLOW[:7], 100.0]
    figure = _figure(disturbed)
    assert list(outlier_notes([("web", figure, "s")])) == [
        "far from the other values, but counted: web, repeat 8: 100.0 s"
    ]
    assert figure.spread is not None and figure.spread.count == 8
    # Ranks keep it from hiding what the other seven show.
    assert long_text(_of(disturbed, QUICK)).startswith("-51.8 % (-84.4 to -47.1)")
