"""The parts of the Live screen by themselves: the use of the CPUs, the time axis, cards, large letters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from vmlab.model.sample import Sample, SampleNames
from vmlab.report.run.tiles_board import TargetBar
from vmlab.system.text_width import ends_of
from vmlab.tui.state.history import CpuUse, Gauge, History, bridged, cpu_use, outside_share
from vmlab.tui.state.views import CellView, GuestView, Moment, RunView, WorkloadView
from vmlab.tui.widgets.charts.chart_head import axis_begin, axis_line, columns_of, users_of, with_users
from vmlab.tui.widgets.glyphs import Glyphs
from vmlab.tui.widgets.large_strip import COLUMNS, LargeWords, RunStrip, large
from vmlab.tui.widgets.status_strip import LIVE, StatusStrip, Strip
from vmlab.tui.widgets.tables.guest_cards import NARROWEST, Cards
from vmlab.tui.widgets.tables.tiles_answer import TargetMeter

FANCY = Glyphs(plain=False)


def busy(mono: float, guests: dict[str, float], **more: float) -> Sample:
    values = {"cpu_count": 2.0, **more, **{f"guest_cpu_percent[{name}]": cpu for name, cpu in guests.items()}}
    return Sample(mono, mono, 1.0, 0.0, SampleNames.of(tuple(values)), tuple(values.values()))


def test_the_cpus_work_for_the_guests_the_lab_and_others() -> None:
    use = cpu_use(busy(1, {"t1-a": 60.0, "t1-b": 20.0}, cpu_lab_percent=45.0, cpu_outside_lab_percent=30.0))
    # Two guests use 80 % of one of two CPUs, which is 40 % of both.
    assert use == CpuUse(40.0, 5.0, 30.0)


def test_without_guests_the_lab_is_what_it_uses_itself() -> None:
    use = cpu_use(busy(1, {}, cpu_lab_percent=3.0, cpu_outside_lab_percent=50.0))
    assert math.isnan(use.guests)
    assert use[1:] == CpuUse(0.0, 3.0, 50.0)[1:]


def test_without_a_lab_the_guests_are_the_hosts_own() -> None:
    own = {"domain_cpu_percent[one]": 60.0, "domain_cpu_percent[two]": math.nan}
    use = cpu_use(busy(1, {}, cpu_lab_percent=4.0, cpu_outside_lab_percent=50.0, **own))
    assert use == CpuUse(30.0, 4.0, 20.0, watched=True)
    _, line = with_users([[("CPU", "title")]], use, 60)
    assert "".join(text for text, _ in line).split() == ["guests", "30", "vmlab", "4", "other", "20"]
    assert {tone for _, tone in line} == {"plain"}


def test_what_guests_and_lab_use_is_not_divided_in_a_tick_without_all_guests() -> None:
    """Such a tick of three tiles said that the lab used 97 % of the CPUs, and no guest any."""
    for unread in ({"t1-a": math.nan, "t1-b": math.nan}, {"t1-a": 60.0, "t1-b": math.nan}):
        use = cpu_use(busy(1, unread, cpu_lab_percent=97.0, cpu_outside_lab_percent=2.0))
        assert use[1:] == CpuUse(0.0, 97.0, 2.0, undivided=True)[1:]
        (_, line) = with_users([[("CPU", "title")]], use, 60)
        assert "".join(text for text, _ in line).split() == ["guests+lab", "97", "other", "2"]
    much = cpu_use(busy(1, {"t1-a": math.nan}, cpu_lab_percent=50.0, cpu_outside_lab_percent=40.0))
    assert [tone for _, tone in users_of(much, 60)] == ["plain", "warning"]


def test_guests_never_use_more_than_the_lab_that_holds_them() -> None:
    assert cpu_use(busy(1, {"t1-a": 100.0}, cpu_lab_percent=49.0))[:2] == (49.0, 0.0)


def test_other_work_is_a_mean_of_what_is_known() -> None:
    samples = [busy(n, {}, cpu_outside_lab_percent=share) for n, share in enumerate((10.0, math.nan, 30.0))]
    assert outside_share(samples) == 20.0
    assert math.isnan(outside_share([]))


def test_a_mark_stands_where_its_moment_was() -> None:
    moments = (Moment(20.0, "long ago"), Moment(70.0, "prepare"), Moment(100.0, "cell 2", "accent"), Moment(101.0, "x"))
    marks = columns_of(moments, 100.0, 2.0, 40)
    assert {column: moment.word for column, moment in marks.items()} == {24: "prepare", 39: "cell 2"}


def test_a_phase_is_marked_only_where_its_word_fits() -> None:
    moments = [Moment(float(at), "prepare", tone) for at, tone in ((40, "quiet"), (80, "quiet"), (84, "accent"))]
    assert sorted(columns_of(moments, 100.0, 2.0, 40)) == [9, 31]
    assert columns_of((), 100.0, 2.0, 40) == {}


def test_the_axis_has_its_ends_and_the_words_that_fit() -> None:
    marks = {10: Moment(0, "prepare"), 14: Moment(0, "execute", "accent")}
    line = axis_line(marks, 40, "|")
    assert "".join(text for text, _ in line) == "          |   |execute               now"
    assert ("|execute", "accent") in line
    assert [axis_begin(seconds) for seconds in (80.0, 104.0, 3600.0)] == ["-80 s", "-104s", "-60 m"]


@pytest.mark.parametrize(
    ("values", "spark"), [((0.0, 50.0, 100.0, 900.0), "▁▅██"), ((math.nan, 1.0), " ▂"), ((), "")], ids=str
)
def test_a_small_history_has_a_character_a_value(values: tuple[float, ...], spark: str) -> None:
    assert FANCY.spark(values, 100.0) == [spark]
    assert "".join(Glyphs(plain=True).spark(values, 100.0, 2)).isascii()


def cards(tiles: int, width: int, height: int) -> list[str] | None:
    guests = [
        GuestView(tile, name, "fileserver", "running", (WorkloadView("filecopy", 0.0, 0.5),))
        for tile in range(1, tiles + 1)
        for name in ("file-a", "file-b")
    ]
    history = History()
    for tick in range(50):
        history.take(busy(tick, {guest.key: 2.0 * tick for guest in guests}))
    lines = Cards(guests, history, 30.0, FANCY).lines(width, height)
    return None if lines is None else ["".join(text for text, _ in line) for line in lines]


@pytest.mark.parametrize("tiles", [1, 2, 3])
@pytest.mark.parametrize("width", [80, 120, 200])
def test_cards_stand_side_by_side_and_fit(tiles: int, width: int) -> None:
    lines = cards(tiles, width, 30)
    if width < tiles * (NARROWEST + 2):
        assert lines is None
        return
    assert lines is not None
    assert max(map(len, lines)) <= width
    titles = [line for line in lines if "file-a" in line]
    assert len(titles) == 1 and titles[0].count("file-a") == tiles
    assert any(line.count("CPU") == tiles and "98" in line and "█" in line for line in lines)


def test_cards_are_closer_where_there_is_less_room_and_give_way_to_the_table() -> None:
    airy, close = cards(1, 80, 30), cards(1, 80, 8)
    assert airy is not None and close is not None and len(close) < len(airy)
    assert cards(1, 80, 5) is None
    assert cards(3, 80, 30) is None


def test_large_letters_are_three_rows_of_the_same_length() -> None:
    rows = large("write 1/2")
    assert [len(row) for row in rows] == [len("write 1/2") * COLUMNS - 1] * 3
    assert large("1") == ["▄█ ", " █ ", "▀▀▀"]


def told(run: RunView, now: float, outside: float | None = None, width: int = 120, gauges: Sequence[Gauge] = ()) -> str:
    strip = StatusStrip()
    strip.show(Strip(run, now, LIVE, outside, gauges))
    return "\n".join("".join(text for text, _ in line) for line in strip.lines(width, 2))


def test_an_estimate_that_was_passed_is_said_to_be() -> None:
    run = RunView(id="r", scenario="tile", expected_seconds=236.0)
    assert "run 3:00 of about 4 min" in told(run, 180.0)
    assert "run 4:41, 0:45 longer than estimated" in told(run, 281.0)


def test_a_recording_knows_how_long_it_is() -> None:
    assert "run 4:41 of 5:00" in told(RunView(id="r", expected_seconds=236.0, length=300.0), 281.0)


def test_much_other_work_is_told_in_a_warning() -> None:
    assert "! other work takes 34 % of the CPUs" in told(RunView(id="r"), 1.0, 34.4)
    assert "other work" not in told(RunView(id="r"), 1.0)


def strip_words(run: RunView) -> list[tuple[str, str]]:
    """Captions and large words of the strip on a projector."""
    strip = RunStrip()
    strip.shown = LargeWords(run)
    return [(word.caption, word.text) for word in strip.words(200)]


def tile_cell(**more: Any) -> CellView:
    return CellView(3, (("tiles", 1), ("cache", "none")), 1, **more)


def test_large_letters_have_the_mode_of_now_and_what_changes_next() -> None:
    run = RunView(id="r", cells_planned=6, cell=tile_cell(), coming=(("tiles", 1), ("cache", "writeback")))
    assert strip_words(run)[1:] == [("cache", "none"), ("then cache", "writeback")]
    switched = tile_cell(switches=((5.0, "cache", "writeback"),))
    assert strip_words(run._replace(cell=switched))[1] == ("now cache", "writeback")
    more = (("tiles", 2), ("cache", "none"))
    assert strip_words(run._replace(coming=more))[-1] == ("then tiles", "2")


def test_where_there_is_little_room_emulation_and_what_was_switched_are_told_first() -> None:
    cell = tile_cell(switches=((5.0, "cache", "writeback"),))
    run = RunView(id="r", scenario="consolidation", size="demo", cells_planned=6, cell=cell)
    run = run._replace(accelerator="tcg", ordered=("emulated disk",))
    assert "tiles 1, cache none  now cache writeback  TCG" in told(run, 0.0, width=160)
    narrow = told(run, 0.0, width=80).splitlines()[0]
    assert "TCG" in narrow and "now cache writeback" in narrow


@pytest.mark.parametrize("width", range(73, 130, 7))
def test_what_is_not_the_hosts_own_is_told_whole_or_not_at_all(width: int) -> None:
    run = RunView(id="r", scenario="consolidation", size="demo", cells_planned=6, cell=tile_cell(), accelerator="tcg")
    first = told(run._replace(ordered=("emulated disk", "ordered host")), 0.0, width=width).splitlines()[0]
    shown = [word for word in ("emulated disk", "limited host") if word in first]
    assert "…" not in first and "tiles 1, cache none" in first and "TCG" in first
    rest = first.partition("tiles 1, cache none")[2].replace("TCG, emulated", "").replace("TCG", "")
    assert rest.split() == [*" ".join(shown).split(), "●", "LIVE"]
    assert len(shown) == 2 or width < 110


def test_where_there_is_little_room_what_comes_next_takes_that_of_the_bars() -> None:
    cell = tile_cell(phase="execute", phase_began=0.0)
    run = RunView(id="r", cells_planned=6, cell=cell, next_axes=(("tiles", 1), ("cache", "writeback")))
    busy_host = (Gauge("disk", 97.0, True), Gauge("cpu", 100.0, True))
    assert "█" in told(run, 59.0, width=100, gauges=busy_host)
    narrow = told(run, 59.0, width=80, gauges=busy_host).splitlines()[1]
    assert "next cell: tiles 1, cache writeback" in narrow
    assert "DISK  97 %  CPU 100 %" in narrow


def test_a_guest_that_is_gone_has_no_figures() -> None:
    history = History()
    history.take(busy(1, {"t1-a": 60.0}))
    guests = [GuestView(1, "a", "web", state) for state in ("running", "gone")]
    for guest, shown in zip(guests, (True, False), strict=True):
        lines = Cards([guest], history, 1.0, FANCY).lines(80, 30)
        assert lines is not None
        assert ("60" in "".join(text for line in lines for text, _ in line)) is shown


def test_what_comes_next_is_told_apart_from_what_the_user_changed() -> None:
    axes = (("cache", "none"),)
    assert "then cache none" in told(RunView(id="r", coming=axes), 1.0)
    changed = told(RunView(id="r", coming=axes, next_axes=axes), 1.0)
    assert "next cell: cache none" in changed and "then" not in changed


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("width", [80, 110, 190])
def test_targets_of_other_loads_have_other_bars_or_a_mark_and_always_a_factor(width: int, plain: bool) -> None:
    """4.39 of 2 s, 27.8 of 4 s and 53.4 of 10 s were drawn equally long."""
    meter = TargetMeter()
    meter.glyphs = Glyphs(plain=plain)
    meter.shown = (
        TargetBar("web p95", 4.39 / 2, "4.39 s", "2 s", met=False),
        TargetBar("database p95", 27.8 / 4, "27.8 s", "4 s", met=False),
        TargetBar("mail p95", 0.999, "9.99 s", "10 s", met=True),
        TargetBar("copy p95", 1.001, "10.01 s", "10 s", met=False),
    )
    rows = ["".join(text for text, _ in line) for line in meter.lines(width, 4)]
    assert max(map(len, rows)) <= width
    full, mark, beyond = "=|>" if plain else "█┃▶"
    (limit,) = {row.index(mark) for row in rows}
    begin = rows[1].index(full)
    bars = [row[begin : rows[1].rindex(beyond) + 1] for row in rows]
    assert abs(3 * (limit - begin) - len(bars[0])) <= 3
    # The bar of a missed target goes on behind the limit, and is marked where it is longer than there is room for.
    assert [bar[limit - begin + 1] == full for bar in bars] == [True, True, False, True]
    assert bars[0].count(full) == pytest.approx(2.195 * (limit - begin), abs=2)
    assert [bar.endswith(2 * beyond) for bar in bars] == [False, True, False, False]
    assert [row.split()[-2:] for row in rows] == [
        ["2.2x", "MISSED"],
        ["7.0x", "MISSED"],
        ["1.00x", "met"],
        ["1.00x", "MISSED"],
    ]


def test_a_reading_that_misses_a_tick_draws_no_comb_and_a_longer_pause_a_gap() -> None:
    none = math.nan
    assert bridged([1.0, none, 3.0, none, none, 6.0]) == [1.0, 3.0, 3.0, 6.0, 6.0, 6.0]
    kept = bridged([none, 2.0, none, none, none, 6.0, none])
    assert [value == value for value in kept] == [False, True, False, False, False, True, False]


def test_what_was_read_of_guests_stands_for_two_ticks_in_which_they_were_not_read() -> None:
    history, shown = History(), []
    for mono, cpu in enumerate((50.0, math.nan, math.nan, math.nan), start=1):
        history.take(busy(mono, {"t1-a": cpu}, cpu_lab_percent=30.0 + mono))
        assert history.last is not None
        shown.append(history.last.get("guest_cpu_percent[t1-a]"))
        assert history.last.get("cpu_lab_percent") == 30.0 + mono, "what was read is this tick's"
    assert shown[:3] == [50.0] * 3 and math.isnan(shown[3])
    history.take(busy(5, {"t1-b": math.nan}))
    assert history.last is not None and math.isnan(history.last.get("guest_cpu_percent[t1-b]")), "another guest"


def test_one_guest_that_was_not_read_keeps_its_values_beside_the_others() -> None:
    history = History()
    history.take(busy(1, {"t1-a": 60.0, "t1-b": 20.0}, cpu_lab_percent=45.0))
    history.take(busy(2, {"t1-a": 70.0, "t1-b": math.nan}, cpu_lab_percent=48.0))
    assert history.last is not None and cpu_use(history.last) == CpuUse(45.0, 3.0, math.nan)


def test_a_long_path_keeps_its_beginning_and_more_of_its_end() -> None:
    path = "/var/lib/libvirt/images/customers/database-of-accounts.qcow2"
    for width in (2, 3, 10, 20, 40):
        told = ends_of(path, width)
        begin, _, end = told.partition("…")
        assert len(told) == width and path.startswith(begin) and path.endswith(end) and len(end) >= len(begin)
    assert ends_of(path, len(path)) == path
