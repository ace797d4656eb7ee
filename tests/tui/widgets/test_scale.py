"""Scales, figures and signs."""

import math

import pytest

from vmlab.tui.widgets.charts.axis_scale import clock, count, figure, nice_top, scale_for, short
from vmlab.tui.widgets.glyphs import glyphs_for


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (0.034, "0.03"), (0.999, "1.0"), (4.72, "4.7"), (9.99, "10.0"), (98.4, "98.4"), (123.6, "124")],
)
def test_figures_are_short(value: float, told: str) -> None:
    assert short(value) == told


def test_what_was_not_measured_is_no_nought() -> None:
    assert short(math.nan) == "\N{EN DASH}"
    assert figure(math.nan, "%", scale_for("%", 0, 100.0)) == "\N{EN DASH}"


@pytest.mark.parametrize("value", [0.3, 1, 7, 99, 1234, 5e7])
def test_the_end_of_a_scale_is_at_or_above_the_largest_value(value: float) -> None:
    assert value <= nice_top(value) <= value * 2
    assert value <= nice_top(value, binary=True) <= value * 2


def test_units_follow_the_size() -> None:
    assert scale_for("B", 2.0**31).unit == "GiB"
    assert scale_for("B", 2.0**25).unit == "MiB"
    assert scale_for("B/s", 5e6).text(5e6) == "5.0"


def test_clocks_and_counts() -> None:
    assert [clock(8.9), clock(725), clock(3723)] == ["0:08", "12:05", "1:02:03"]
    assert [count(812), count(31400), count(2.1e6)] == ["812", "31.4k", "2.1M"]


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, True),
        ({"LANG": "en_US.UTF-8", "VMLAB_ASCII": "1"}, True),
        ({"LANG": "xx_YY.NO-SUCH"}, True),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, True),
        ({"LANG": "C.UTF-8", "TERM": "linux-16color"}, True),
        ({"LANG": "C.UTF-8", "TERM": "vt220"}, True),
        ({"LANG": "C.UTF-8", "TERM": "vt100-am"}, True),
        ({"LANG": "C.UTF-8", "TERM": "vte-256color"}, False),
        ({"LANG": "C.UTF-8", "TERM": "screen.linux"}, False),
        ({"LANG": "C.UTF-8", "TERM": "xterm-256color"}, False),
    ],
)
def test_the_locale_decides_which_signs_there_are(environment: dict[str, str], plain: bool) -> None:
    glyphs = glyphs_for(environment)
    assert glyphs.plain is plain
    drawn = glyphs.sign("failed") + "".join(glyphs.bar(0.6, 10)) + glyphs.ascii("±3 … \N{EN DASH}")
    assert drawn.isascii() is plain


def test_a_bar_is_as_long_as_it_should_be() -> None:
    for plain in ("1", ""):
        glyphs = glyphs_for({"LANG": "C.UTF-8", "VMLAB_ASCII": plain})
        for fraction in (-1, 0, 0.03, 0.5, 0.99, 1, 7):
            assert sum(map(len, glyphs.bar(fraction, 10))) == 10


def test_a_letter_that_ascii_lacks_is_as_wide_as_it_was() -> None:
    glyphs = glyphs_for({"LANG": "C"})
    assert glyphs.ascii("数a\u0301é…") == "??a?~"
