"""Quantities as people read them."""

import pytest

from vmlab.model.quantities import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (999 * 2**10, "999 KiB"),
        (1020 * 2**20, "0.996 GiB"),
        (999.6 * 2**20, "0.976 GiB"),
        (1.25 * 2**30, "1.25 GiB"),
        (999.4 * 2**40, "999 TiB"),
        (1000 * 2**40, "0.977 PiB"),
        (7 * 2**50, "7 PiB"),
        (2**60, "1 EiB"),
        (-3 * 2**60, "-3 EiB"),
        (float("nan"), "- B"),
        (float("inf"), "- B"),
    ],
)
def test_bytes_have_three_figures_and_no_exponent(count: float, words: str) -> None:
    assert format_bytes(count) == words


@pytest.mark.parametrize(
    ("text", "count"),
    [("3 PB", 3 * 10**15), ("1 EB", 10**18), ("7 PiB", 7 * 2**50), ("0.5 EiB", 2**59), ("1 EiB", 2**60)],
)
def test_bytes_have_every_unit_up_to_the_largest_disk(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["1.1 EiB", "2 EB", "1025 PiB"])
def test_no_disk_is_larger_than_an_exbibyte(text: str) -> None:
    with pytest.raises(ValueError, match="at most 1 EiB"):
        parse_bytes(text)
