"""Quantities as people read them."""

import pytest

from vmlab.model.quantities import format_bytes


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (999 * 2**10, "999 KiB"),
        (1020 * 2**20, "0.996 GiB"),
        (999.6 * 2**20, "0.976 GiB"),
        (1.25 * 2**30, "1.25 GiB"),
    ],
)
def test_bytes_have_three_figures_and_no_exponent(count: float, words: str) -> None:
    assert format_bytes(count) == words
