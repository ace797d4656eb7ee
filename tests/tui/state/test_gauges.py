"""How near disk and CPUs are to their limits."""

from __future__ import annotations

import math
from array import array

import pytest

from vmlab.model.sample import Sample, SampleNames
from vmlab.tui.state.history import gauges

LAYOUT = SampleNames.of(("cpu_idle_percent", "cpu_iowait_percent", "disk_util_percent"))


def samples(*values: tuple[float, float, float]) -> list[Sample]:
    return [Sample(0.0, float(place), 1.0, 0.0, LAYOUT, array("d", each)) for place, each in enumerate(values)]


def test_waiting_for_the_disk_is_no_work_of_the_cpus() -> None:
    disk, cpu = gauges(samples((10.0, 50.0, 100.0), (10.0, 50.0, 96.0), (10.0, 50.0, 20.0)))
    assert (disk.name, disk.percent, disk.at_limit) == ("disk", 96.0, True)
    assert (cpu.name, cpu.percent, cpu.at_limit) == ("cpu", 40.0, False)
    assert disk.tone == "bad" and cpu.tone == "plain"


@pytest.mark.parametrize("at_limit", range(11))
def test_a_figure_is_at_the_limit_exactly_where_its_tone_is(at_limit: int) -> None:
    disk, _ = gauges(samples(*[(50.0, 0.0, 91.0)] * at_limit, *[(50.0, 0.0, 5.0)] * (10 - at_limit)))
    assert (disk.tone == "bad") == disk.at_limit == (disk.percent >= disk.limit) == (at_limit >= 5)


def test_what_is_not_known_has_no_gauge() -> None:
    (cpu,) = gauges(samples((0.0, 0.0, math.nan), (4.0, 0.0, math.nan)))
    assert (cpu.name, cpu.percent, cpu.at_limit) == ("cpu", 100.0, True)
    assert gauges([]) == ()


def test_a_bar_is_as_long_as_its_figure() -> None:
    (cpu,) = gauges(samples((44.0, 0.0, math.nan)))
    assert cpu.bar(10, plain=False) == "██████░░░░"
    assert cpu.bar(10, plain=True) == "======...."
