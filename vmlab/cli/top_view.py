"""One sample of the host as lines of text for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from vmlab.model.sample import Sample
from vmlab.model.units import format_bytes
from vmlab.telemetry.cpu_speed import SPEED
from vmlab.telemetry.host.host_figures import HostFigure, figures_of_group, groups

_NOTHING = "-"
_MOST_CPUS = 16
_OF_OTHER_FORM = ("CPU", "Speed", "Stalled", "Disk")
"""Lines that are more than figures with their names."""


def host_lines(sample: Sample) -> list[str]:
    """CPU, memory, KSM, pressure and disks; cache is never part of what is used."""
    return [
        *_cpu(sample),
        *_memory(sample),
        *_pressure(sample),
        *_disks(sample),
        f"Tick      {sample.length:.3f} s   {sample.lateness * 1e3:.2f} ms late"
        f"   recorder {_percent(sample.get('recorder_cpu_percent'))} of one CPU",
    ]


def _cpu(sample: Sample) -> Iterator[str]:
    yield f"CPU       {_shares(sample, '')}"
    if SPEED in sample.layout.position:
        yield f"Speed     {_speeds(sample)}"
    outside, lab = sample.get("cpu_outside_lab_percent"), sample.get("cpu_lab_percent")
    yield f"          this program {_percent(lab)} | everything else {_percent(outside)}"
    cpus = list(sample.instances("cpu_user_percent"))
    for cpu in cpus[:_MOST_CPUS] if len(cpus) > 1 else ():
        yield f"  CPU {cpu:<4}{_shares(sample, f'[{cpu}]')}"


def _speeds(sample: Sample) -> str:
    """``82 % of the best since the start, by CPU 64 100``."""
    each = [_number(speed, ".0f") for speed in sample.instances(SPEED).values()]
    by_cpu = f", by CPU {' '.join(each[:_MOST_CPUS])}" if len(each) > 1 else ""
    return f"{_number(sample.get(SPEED), '.0f')} % of the best since the start{by_cpu}"


def _shares(sample: Sample, instance: str) -> str:
    return " | ".join(_words(sample, figures_of_group("CPU"), instance))


def _words(sample: Sample, figures: Iterable[HostFigure], instance: str = "") -> Iterator[str]:
    """``user 61.0 %`` for each of some figures, as its unit is written."""
    for figure in figures:
        yield f"{figure.short} {_WRITTEN[figure.unit](sample.get(figure.name + instance))}"


def _memory(sample: Sample) -> Iterator[str]:
    for group in (one for one in groups() if one not in _OF_OTHER_FORM):
        figures = [figure for figure in figures_of_group(group) if figure.name in sample.layout.position]
        if figures:
            yield f"{group:<9} " + " | ".join(_words(sample, figures))


def _pressure(sample: Sample) -> Iterator[str]:
    if "pressure_io_some_percent" in sample.layout.position:
        parts = [
            f"{figure.short} {_number(sample.get(figure.name), '.1f')}"
            f" / {_percent(sample.get(figure.name.replace('_some_', '_full_')))}"
            for figure in figures_of_group("Stalled")
        ]
        yield "Stalled   " + " | ".join(parts) + " (some / all)"


def _disks(sample: Sample) -> Iterator[str]:
    disks = sample.instances("disk_reads_per_second")
    if not disks:
        return
    columns = figures_of_group("Disk")
    units = ("" if figure.unit == "1/s" else _IN_COLUMNS.get(figure.unit, figure.unit) for figure in columns)
    yield f"{'Disk':<8}" + "".join(f"{figure.short:>9}" for figure in columns)
    yield " " * 8 + "".join(f"{unit:>9}" for unit in units)
    for disk in disks:
        values = ((sample.get(f"{figure.name}[{disk}]"), figure.unit) for figure in columns)
        scaled = (value / 1e6 if unit == "B/s" else value for value, unit in values)
        yield f"{disk:<8}" + "".join(f"{_number(value, '.2f'):>9}" for value in scaled)


def _percent(value: float) -> str:
    return f"{_number(value, '.1f')} %"


def _bytes(value: float) -> str:
    return format_bytes(value) if math.isfinite(value) else _NOTHING


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else _NOTHING


def _with_unit(unit: str, value: float) -> str:
    return f"{_number(value, '.1f')} {unit}"


_WRITTEN: dict[str, Callable[[float], str]] = {
    "%": _percent,
    "B": _bytes,
    "B/s": lambda value: f"{_bytes(value)}/s",
    "1": lambda value: f"{_number(value, '.0f')} pages",
    **{unit: partial(_with_unit, unit) for unit in ("1/s", "ms", "s", "W")},
}
_IN_COLUMNS = {"B/s": "MB/s"}
