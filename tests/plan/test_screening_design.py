"""Designs of screenings: balanced, orthogonal, folded, and as small as they can be."""

from __future__ import annotations

import itertools

import pytest

from vmlab.plan.tuning.screening_design import DEFAULT, mirrored, screening, setting_name, usual_blocks


@pytest.mark.parametrize("levers", range(2, 13))
def test_each_design_is_balanced_orthogonal_and_folded(levers: int) -> None:
    design = screening(levers)
    assert len({*design}) == len(design)
    assert {mirrored(levels) for levels in design} == {*design}
    assert design[len(design) // 2 :] == tuple(map(mirrored, design[: len(design) // 2]))
    columns = [*zip(*design, strict=True)]
    assert [sum(column) for column in columns] == [0] * levers
    for one, other in itertools.combinations(columns, 2):
        assert sum(a * b for a, b in zip(one, other, strict=True)) == 0
    for one, two, three in itertools.combinations(columns, 3):
        # A lever against a pair of others: nothing of the pair is in its effect.
        assert sum(a * b * c for a, b, c in zip(one, two, three, strict=True)) == 0
    assert (-1,) * levers in design


def test_it_is_the_smallest_that_holds_the_levers() -> None:
    assert [len(screening(levers)) for levers in range(2, 13)] == [4, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24]


@pytest.mark.parametrize("levers", [0, 1, 13])
def test_other_numbers_of_levers_have_none(levers: int) -> None:
    with pytest.raises(ValueError, match="2 to 12 levers"):
        screening(levers)


def test_the_base_of_twelve_is_that_of_plackett_and_burman() -> None:
    """Table of 1946, N = 12: the first row is ++-+++---+-, the last all minus."""
    base = screening(11)[:12]
    assert "".join("+" if level > 0 else "-" for level in base[0]) == "++-+++---+-"
    assert base[1] == (base[0][-1], *base[0][:-1])
    assert base[-1] == (-1,) * 11


@pytest.mark.parametrize("levers", range(2, 13))
def test_intervals_have_eight_degrees_of_freedom(levers: int) -> None:
    pairs, blocks = len(screening(levers)) // 2, usual_blocks(levers)
    assert pairs * (blocks - 1) >= 8 > pairs * (blocks - 2)
    assert blocks >= 2


def test_settings_have_letters() -> None:
    assert [setting_name(levels) for levels in [(-1, -1, -1), (1, -1, 1), (-1, 1, -1)]] == [DEFAULT, "ac", "b"]
