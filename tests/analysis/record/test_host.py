"""What the host went through during a phase, from the samples in a store."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from vmlab.analysis.record.host_means import host_during
from vmlab.model.sample import Sample, SampleNames
from vmlab.store.reader import RunReader
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter

LAYOUT = SampleNames.of(
    [
        "tick_length_seconds",
        "tick_lateness_seconds",
        "cpu_count",
        "cpu_steal_percent",
        "disk_await_ms",
        "cpu_user_percent",
        "cpu_user_percent[0]",
    ]
)


@pytest.fixture
def reader(tmp_path: Path) -> RunReader:
    """Four ticks of a second that end at 11 to 14; the last value of user time could not be had."""
    writer = RunWriter(tmp_path / "run.sqlite")
    keep = SampleWriter(writer)
    for end, user in ((11, 20.0), (12, 40.0), (13, 80.0), (14, math.nan)):
        keep(Sample(end, end, 1.0, 0.0, LAYOUT, (1.0, 0.0, 2.0, 1.0, math.nan, user, 99.0)))
    writer.close()
    return RunReader(tmp_path / "run.sqlite")


def test_promised_figures_come_first_and_others_follow_by_name(reader: RunReader) -> None:
    found = host_during(reader, 10.0, 14.0)
    assert list(found)[:1] == ["cpu_user_percent"]
    assert "cpu_steal_percent" in found
    assert "cpu_user_percent[0]" not in found
    assert "disk_await_ms" not in found
    reader.close()


def test_ticks_count_with_the_part_that_lies_in_the_phase_and_the_area_is_in_cpu_seconds(reader: RunReader) -> None:
    user = host_during(reader, 10.5, 12.25)["cpu_user_percent"]
    assert user.mean == pytest.approx((20 * 0.5 + 40 + 80 * 0.25) / 1.75)
    assert user.area == pytest.approx((0.2 * 0.5 + 0.4 + 0.8 * 0.25) * 2)
    reader.close()


def test_without_samples_there_are_no_figures(tmp_path: Path) -> None:
    RunWriter(tmp_path / "run.sqlite").close()
    with RunReader(tmp_path / "run.sqlite") as reader:
        assert host_during(reader, 0.0, 10.0) == {}
