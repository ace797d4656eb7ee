"""What bound a cell, and where its bytes went."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.tui.conftest import RECORDED
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import run_document
from vmlab.analysis.record.bound import bound_by, idle_disk_words, vcpus_of
from vmlab.analysis.record.coverage import Window
from vmlab.analysis.record.traffic import disk_traffic
from vmlab.analysis.shape import RunDocument
from vmlab.model.jsonable import jsonable
from vmlab.model.results import Summary
from vmlab.model.sample import GUESTS_DISKS_READ, GUESTS_READ, Sample, SampleNames
from vmlab.report.bound_text import bound_counts, limit_words, limits_section, traffic_row
from vmlab.report.run.cell_text import cell_text
from vmlab.report.run.run_page import run_table
from vmlab.report.writers.text import text_lines
from vmlab.store.reader import RunReader

IDLE = {"cpu_idle_percent": 90.0, "cpu_iowait_percent": 0.0, "disk_util_percent": 2.0}
BUSY = {**IDLE, "cpu_idle_percent": 2.0, "cpu_iowait_percent": 1.0}
WAITING = {**IDLE, "cpu_idle_percent": 40.0, "cpu_iowait_percent": 55.0, "disk_util_percent": 99.0}


def ticks(*values: dict[str, float]) -> list[Sample]:
    """Ticks of a second, the first of which ends at 1; guests are read as they begin."""
    made = []
    for end, one in enumerate(values, start=1):
        one = {**one, **dict.fromkeys((GUESTS_READ[0], GUESTS_DISKS_READ[0]), 0.0)}
        one |= dict.fromkeys((GUESTS_READ[1], GUESTS_DISKS_READ[1]), 1.0)
        layout = SampleNames.of(list(one))
        made.append(Sample(end, end, 1.0, 0.0, layout, tuple(one.values())))
    return made


def span(seconds: int) -> Window:
    """The first seconds of `ticks`."""
    return Window.plain(0.0, float(seconds))


def resource(*values: dict[str, float], vcpus: dict[str, int] | None = None) -> tuple[str, str]:
    found = bound_by(ticks(*values), span(len(values)), vcpus or {})
    assert found is not None
    return found.resource, found.where


def test_a_resource_binds_that_is_at_its_limit_for_half_of_the_time() -> None:
    assert resource(BUSY, BUSY, IDLE, IDLE) == ("cpu", "host")
    assert resource(BUSY, IDLE, IDLE) == ("none", "")
    assert resource(WAITING, WAITING, BUSY) == ("disk", "host")
    assert resource(BUSY, BUSY, WAITING) == ("cpu", "host")


def test_iowait_is_not_work_of_the_cpu() -> None:
    assert resource({**WAITING, "disk_util_percent": 50.0}) == ("none", "")


def test_a_lack_of_memory_comes_first_and_needs_a_tenth_of_the_time() -> None:
    stalled = {**WAITING, "pressure_memory_some_percent": 12.0}
    assert resource(stalled, *[WAITING] * 9) == ("memory", "host")
    assert resource(stalled, *[WAITING] * 10) == ("disk", "host")
    swapping = {**IDLE, "swap_in_bytes_per_second": 0.0, "swap_out_bytes_per_second": 2.0**21}
    assert resource(swapping) == ("memory", "host")
    assert resource({**swapping, "swap_out_bytes_per_second": 4096.0}) == ("none", "")


def test_a_guest_may_wait_for_its_own_processor_on_an_idle_host() -> None:
    busy = {**IDLE, "guest_cpu_percent[t1-a]": 199.0, "guest_cpu_percent[t1-b]": 99.0}
    assert resource(busy, vcpus={"a": 4, "b": 1}) == ("cpu", "t1-b")
    assert resource(busy, vcpus={"a": 4, "b": 2}) == ("none", "")
    assert resource(busy) == ("none", ""), "the number of processors is not known"
    assert resource({**BUSY, "guest_cpu_percent[t1-b]": 99.0}, vcpus={"b": 1}) == ("cpu", "host")


def test_vcpus_are_those_of_the_settings() -> None:
    assert vcpus_of({"guests": {"a": {"vcpus": 2}, "b": {}}}) == {"a": 2}
    assert vcpus_of({}) == {}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {**BUSY, "cpu_outside_lab_percent": 51.8},
            "the host's CPUs were at their limit for 100 % of the time (on average 97 % busy, 52 % with other work "
            "than the lab's); the disk was busy for 2.0 % of the time",
        ),
        (
            {**WAITING, "cpu_outside_lab_percent": 1.0},
            "the host's disk was at its limit for 100 % of the time (on average 99 % busy); the CPUs were 5.0 % busy",
        ),
        (
            {**IDLE, "pressure_memory_some_percent": 20.0},
            "the host's memory was at its limit for 100 % of the time (tasks waited for memory 20 % of the time); the "
            "disk was busy for 2.0 % of the time",
        ),
        (
            {**IDLE, "swap_in_bytes_per_second": 2.0**20, "swap_out_bytes_per_second": 2.0**20},
            "the host's memory was at its limit for 100 % of the time (2 MiB/s to and from swap); the disk was busy "
            "for 2.0 % of the time",
        ),
        (
            IDLE,
            "none of the host's resources was at its limit: the CPUs were 10 % busy; the disk was busy for 2.0 % of "
            "the time",
        ),
    ],
)
def test_the_sentence_has_the_evidence(values: dict[str, float], sentence: str) -> None:
    found = bound_by(ticks(values), span(1), {})
    assert found is not None
    assert found.sentence == sentence


def test_nothing_is_said_of_what_was_not_watched() -> None:
    assert bound_by([], span(10), {}) is None
    assert bound_by(ticks(BUSY, BUSY), span(10), {}) is None, "less than half of the time"
    assert bound_by(ticks({"cpu_idle_percent": 1.0, "cpu_iowait_percent": 0.0}), span(1), {}) is None, "no disk"
    found = bound_by(ticks({**BUSY, "pressure_memory_some_percent": math.nan}), span(1), {})
    assert found is not None
    assert "memory_stalled_percent" not in found.evidence


MIB = 2.0**20


def moved(guest: float, host: float) -> dict[str, float]:
    return {
        "disk_read_bytes_per_second": host,
        "disk_write_bytes_per_second": 0.0,
        "guest_disk_read_bytes_per_second[t1-a]": guest,
        "guest_disk_write_bytes_per_second[t1-a]": 0.0,
    }


def test_what_the_disk_did_not_move_came_from_memory() -> None:
    found = disk_traffic(ticks(*[moved(100 * MIB, 7 * MIB)] * 4), span(4))
    assert found is not None
    assert jsonable(found.read) == {
        "guests_bytes": 400 * MIB,
        "host_bytes": 28 * MIB,
        "memory_percent": pytest.approx(93.0),
    }
    assert found.written.memory_percent is None, "too few bytes for a share"
    assert found.sentence.startswith(
        "the guests read 400 MiB, the host's disk read 28 MiB: 93 % served from the host's memory; the guests wrote 0 B"
    )


def test_small_differences_and_other_work_on_the_disk_are_no_memory() -> None:
    found = disk_traffic(ticks(moved(100 * MIB, 95 * MIB)), span(1))
    assert found is not None
    assert "memory" not in found.sentence
    found = disk_traffic(ticks(moved(100 * MIB, 300 * MIB)), span(1))
    assert found is not None
    assert found.read.memory_percent == 0.0


def test_a_rate_counts_for_the_ticks_without_an_answer_before_it() -> None:
    none = {**moved(math.nan, 50 * MIB)}
    found = disk_traffic(ticks(moved(10 * MIB, 50 * MIB), none, none, moved(50 * MIB, 50 * MIB)), span(4))
    assert found is not None
    assert found.read.guests_bytes == 160 * MIB


def test_without_one_of_its_guests_there_is_no_sum() -> None:
    unknown = {**moved(MIB, MIB), "guest_disk_read_bytes_per_second[t1-b]": math.nan}
    found = disk_traffic(ticks(unknown, unknown), span(2))
    assert found is not None
    assert found.read.guests_bytes is None
    assert disk_traffic(ticks({"disk_read_bytes_per_second": 1.0}), span(1)) is None


@pytest.fixture(scope="module")
def recorded() -> RunDocument:
    with RunReader(RECORDED) as reader:
        return run_document(reader)


def test_a_recorded_tile_waited_for_the_cpu_and_says_that_the_disk_did_not_matter(recorded: RunDocument) -> None:
    assert [cell.bound_by and cell.bound_by.resource for cell in recorded.cells] == ["cpu", "cpu"]
    note = "the disk was busy for at most 1.6 % of the time in these cells, so they did not wait for it"
    text = run_table(recorded, 10_000)
    assert note in text
    assert "at its limit               CPU        CPU" in text
    page = cell_text(recorded, recorded.cells[0], 10_000)
    assert "the host's CPUs were at their limit for 96 % of the time" in page
    sides = [Side.of(name, recorded, cell) for name, cell in (("none", 1), ("writeback", 2))]
    assert any(note in warning for warning in compare(sides).warnings)


def cell(cache: str, busy: float | None) -> CellDocument:
    host = {} if busy is None else {"disk_util_percent": Summary(busy, busy, busy, busy)}
    return CellDocument(cell=1, repeat=1, outcome="passed", axes={"cache": cache} if cache else {}, host=host)


def test_the_disk_is_said_not_to_matter_only_where_cache_modes_differ_and_it_was_idle() -> None:
    assert idle_disk_words([cell("none", 1.0), cell("writeback", 2.0)])
    assert idle_disk_words([cell("none", 1.0), cell("none", 2.0)]) is None
    assert idle_disk_words([cell("none", 1.0), cell("writeback", 12.0)]) is None
    assert idle_disk_words([cell("none", 1.0), cell("writeback", None)]) is None
    of_guests: list[dict[str, Any]] = [{"cache": None, "guests": {"a": {"cache": mode}}} for mode in ("none", "unsafe")]
    assert idle_disk_words([replace(cell("", 1.0), settings=one) for one in of_guests])


def test_of_many_points_only_a_count_is_shown(recorded: RunDocument) -> None:
    first = recorded.cells[0]
    many: RunDocument = replace(recorded, cells=[replace(first, cell=n, axes={"tiles": n}) for n in range(1, 14)])
    assert "the CPU was at its limit in all 13 cells; `vmlab show" in run_table(many, 10_000)


def of_repeats(axes: dict[str, Any], *parts: tuple[dict[str, float], dict[str, float]], outcome: str = "passed") -> Any:
    """Cells of one point, each from a tick of the host's figures and one of the disks'."""
    for repeat, (host, disks) in enumerate(parts, start=1):
        yield CellDocument(
            cell=repeat,
            axes=axes,
            repeat=repeat,
            outcome=outcome,
            bound_by=bound_by(ticks(host), span(1), {}),
            disk_traffic=disk_traffic(ticks(disks), span(1)),
        )


def test_repeats_of_a_point_have_one_line_with_their_means_and_sums() -> None:
    point = {"cache": "writeback"}
    busier = {**WAITING, "disk_util_percent": 91.0}
    cells = [
        *of_repeats(
            point, (WAITING, moved(30 * MIB, 5 * MIB)), (busier, moved(70 * MIB, 20 * MIB)), (IDLE, moved(0, 0))
        ),
        *of_repeats(point, (BUSY, moved(MIB, MIB)), outcome="invalid"),
        *of_repeats({"cache": "none"}, (WAITING, moved(30 * MIB, 40 * MIB))),
    ]
    _, title, writeback, none = text_lines([limits_section(cells)], 10_000)
    assert title == "what bound the cells"
    assert writeback.startswith(
        "cache writeback: the host's disk was at its limit for 67 % of the time (on average 64 % busy); "
        "the CPUs were 6.7 % busy (so in 2 of 3 cells, nothing in 1); "
        "in all 3 cells the guests read 100 MiB, the host's disk read 25 MiB: 75 % served from the host's memory"
    )
    assert none.startswith("cache none: the host's disk was at its limit for 100 % of the time")
    assert "in 1 of" not in none


def test_the_summary_and_each_point_count_the_same_cells() -> None:
    of_a, of_b = ({**IDLE, f"guest_cpu_percent[t1-{name}]": 99.0} for name in "ab")
    ended = [(IDLE, "passed"), (IDLE, "passed"), (of_a, "passed"), (BUSY, "passed"), (of_b, "passed")]
    ended += [(WAITING, "invalid"), (WAITING, "failed")]
    cells = [
        CellDocument(
            cell=number, repeat=number, outcome=outcome, bound_by=bound_by(ticks(values), span(1), {"a": 1, "b": 1})
        )
        for number, (values, outcome) in enumerate(ended, start=1)
    ]
    _, _, said = text_lines([limits_section(cells)], 10_000)
    assert said.startswith("as written: the processors of t1-a were at their limit: 99 % busy;")
    assert said.endswith("(so in 3 of 5 cells, nothing in 2)")
    assert limit_words({"": bound_counts(cells)}) == "the CPU was at its limit in 3 of 5 cells"
    assert traffic_row("at its limit", cells) == "nothing, CPU"
    # Of a run without any cell that passed the others tell it.
    assert limit_words({"": bound_counts(cells[5:])}) == "the disk was at its limit in both cells"


def test_of_resources_that_bound_as_many_cells_one_at_its_limit_is_named() -> None:
    cells = list(of_repeats({}, (IDLE, moved(0, 0)), (BUSY, moved(0, 0))))
    _, _, said = text_lines([limits_section(cells)], 10_000)
    assert said.startswith("as written: the host's CPUs were at their limit")
    assert "(so in 1 of 2 cells, nothing in 1)" in said
