"""How far apart clients started, and how sure that is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vmlab.guests.held_client import TrueStart
from vmlab.lab.cell.common_start import CommonStart, StartSkew

START = CommonStart(host_mono=10.0, lead=1.0)


def clients(*starts: TrueStart | None) -> list[Any]:
    return [SimpleNamespace(started=start) for start in starts]


def test_the_skew_is_from_the_first_to_the_last_and_both_clocks_add_to_its_uncertainty() -> None:
    first, middle, last = TrueStart(100.1, 0.1, 0.01), TrueStart(100.2, 0.2, 0.5), TrueStart(100.4, 0.4, 0.02)
    skew = START.skew(clients(middle, last, first))
    assert skew is not None
    assert skew.seconds == pytest.approx(0.3) and skew.uncertainty == pytest.approx(0.03)


def test_one_client_starts_together_with_itself() -> None:
    assert START.skew(clients(TrueStart(100.1, 0.1, 0.01))) == StartSkew(0.0, 0.0)


@pytest.mark.parametrize("starts", [(), (None,), (TrueStart(100.1, 0.1, 0.01), None)])
def test_while_a_client_has_not_started_there_is_no_skew(starts: tuple[TrueStart | None, ...]) -> None:
    assert START.skew(clients(*starts)) is None
