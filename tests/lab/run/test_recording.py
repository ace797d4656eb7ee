"""Ticks on a full disk: counted, told, and recorded again when there is room. Means: the same for rules and reports."""

import math
from pathlib import Path

import pytest

from tests.fakes.store import FULL, FillableWriter
from vmlab.analysis.record.host_means import host_during
from vmlab.lab.cell.disturbance import JUDGED, Disturbance
from vmlab.lab.run.recording import KeptTicks, RecentFigures
from vmlab.model.event import Event, Notice
from vmlab.model.sample import Sample, SampleNames, split_name
from vmlab.store.reader import RunReader
from vmlab.store.samples import SampleWriter, samples
from vmlab.store.writer import RunWriter
from vmlab.telemetry.cpu_speed import SPEED
from vmlab.telemetry.host_counters import Between

LAYOUT = SampleNames.of(("tick_length_seconds", "tick_lateness_seconds", "cpu_user_percent"))


def tick(number: int) -> Sample:
    return Sample(float(number), float(number), 1.0, 0.0, LAYOUT, (1.0, 0.0, 50.0))


def test_recording_goes_on_when_space_returns_and_the_loss_is_counted(tmp_path: Path) -> None:
    writer = FillableWriter(tmp_path / "run.sqlite")
    told: list[Event] = []
    ticks = KeptTicks(SampleWriter(writer), told.append)
    for number in range(1, 11):
        writer.full = number in (1, 5, 6, 7)
        ticks(tick(number))
    writer.full = True
    ticks(tick(11))
    ticks(tick(12))
    ticks.tell_losses()
    ticks.tell_losses()
    texts = [event.text for event in told if isinstance(event, Notice)]
    assert [text.split(" lost")[0] for text in texts] == ["1 tick is", "3 ticks are", "2 ticks are"]
    assert all(FULL in text for text in texts)
    with RunReader(writer.path) as reader:
        assert [sample.mono for _, sample in samples(reader)] == [2, 3, 4, 8, 9, 10]
    writer.close()


SPANS = [(0.8, 2.25), (1.0, 3.0), (1.2, 1.4), (2.5, 5.5), (0.0, 9.0)]
NOISE = ("cpu_outside_lab_percent", "cpu_steal_percent", "disk_await_ms")
NOISY = SampleNames.of(
    ("tick_length_seconds", "tick_lateness_seconds", "disk_reads_per_second", "disk_writes_per_second", *NOISE)
)


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[RecentFigures, Path]:
    """Ticks of which the third is two seconds long; a steal could not be had. In memory and in a store."""
    writer = RunWriter(tmp_path / "run.sqlite")
    figures = RecentFigures(SampleWriter(writer), {split_name(name)[0] for name in NOISY.names})
    ticks = ((1, 1, 0, 1, 4), (2, 1, 100, math.nan, 9), (4, 2, 40, 3, 2), (5, 1, 10, 4, 0), (6, 1, 70, 5, 25))
    for end, length, outside, steal, reads in ticks:
        values = (float(length), 0.0, float(reads), 1.0, float(outside), float(steal), float(end))
        figures(Sample(float(end), float(end), float(length), 0.0, NOISY, values))
    writer.close()
    return figures, writer.path


@pytest.mark.parametrize("span", SPANS)
def test_a_rule_has_the_means_that_show_prints_also_where_the_span_cuts_a_tick(
    span: tuple[float, float], recorded: tuple[RecentFigures, Path]
) -> None:
    figures, path = recorded
    with RunReader(path) as reader:
        shown = {name: one.mean for name, one in host_during(reader, *span).items() if name in NOISE}
    by_rule = {name: figures.mean(name, *span) for name in NOISE}
    assert {name: mean for name, mean in by_rule.items() if not math.isnan(mean)} == shown
    assert "cpu_outside_lab_percent" in shown


def test_a_rule_has_no_mean_of_a_span_without_ticks(recorded: tuple[RecentFigures, Path]) -> None:
    figures, _ = recorded
    assert math.isnan(figures.mean("cpu_steal_percent", 6.5, 7.0))
    assert math.isnan(figures.mean("cpu_steal_percent", 1.25, 1.75))
    assert math.isnan(figures.mean("nothing", 0.0, 6.0))


def test_of_a_tick_with_hundreds_of_values_those_that_are_judged_are_kept() -> None:
    names = [*JUDGED, f"{SPEED}[0]", f"{SPEED}[1]", *(f"guest_cpu_percent[t1-vm{guest}]" for guest in range(500))]
    layout = SampleNames.of(names)
    passed_on: list[Sample] = []
    figures = RecentFigures(passed_on.append)
    for number in range(1, 4):
        values = [float(place + number) for place in range(len(names))]
        figures(Sample(float(number), float(number), 1.0, 0.0, layout, values))
    assert all(len(sample.values) == len(names) for sample in passed_on)
    assert {len(sample.values) for sample in figures._kept} == {len(JUDGED) + 2}
    assert figures.mean(JUDGED[1], 0.0, 3.0) == 3.0
    assert figures.extremes(SPEED, 0.0, 3.0) == (len(JUDGED) + 1.0, len(JUDGED) + 4.0)


def test_a_cell_is_judged_by_what_is_kept_alone() -> None:
    asked: set[str] = set()

    def mean(name: str, since: float, until: float) -> float:
        asked.add(name)
        return 1.0

    def extremes(name: str, since: float, until: float) -> tuple[float, float]:
        asked.add(name)
        return (1.0, 1.0)

    Disturbance.of(mean, (0.0, 1.0), Between(), extremes)
    assert asked == {*JUDGED}
