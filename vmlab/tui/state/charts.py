"""The charts of the Live screen; the table of host figures defines the content of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmlab.model.ordered import EMULATED_DISK, ORDERED_HOST
from vmlab.telemetry.cpu_speed import LABEL
from vmlab.telemetry.host.host_figures import figures_of_chart
from vmlab.telemetry.host.shown_figure import HostFigure, Terms


class Series(NamedTuple):
    """One area or line. `shown` is the value that stands in figures beside its `label`; `tone` names a colour.

    An `idle` one lies over the others as an outline. `drawn` may differ from `shown` where areas lie on each other:
    dirty pages are part of the cache; what is only shown as a number draws nothing. `unit` is the chart's unless it
    says otherwise; `minor` figures give way where room is short.
    """

    label: str
    tone: str
    shown: Terms
    drawn: Terms
    unit: str | None = None
    minor: bool = False
    idle: bool = False


class Chart(NamedTuple):
    """Series that share one scale. `unit` is ``%``, ``ms``, ``B`` or ``B/s``.

    `top` is the end of the scale: a number, the name of a value such as the total of memory, or None for the largest
    value in sight. `stacked` series add up; others are lines.
    """

    title: str
    unit: str
    series: tuple[Series, ...]
    stacked: bool
    top: float | str | None = None

    @property
    def drawn(self) -> list[Series]:
        """Those that are more than a number, from the lowest to what is idle."""
        return sorted((series for series in self.series if series.drawn), key=lambda series: series.idle)


def _series(figure: HostFigure, unit: str) -> Series:
    shown = tuple((name, 1) for name in (figure.name, *figure.added))
    own = {"1": "pages"}.get(figure.unit, figure.unit)
    return Series(
        label=figure.short,
        tone=figure.tone,
        shown=shown,
        drawn=(figure.area or shown) if figure.drawn else (),
        unit=own if own != unit else None,
        minor=figure.minor,
        idle=figure.idle,
    )


def _chart(name: str, *, stacked: bool = True, top: float | str | None = None, title: str = "") -> Chart:
    """The chart that the table of figures calls `name`; its unit is that of its first figure."""
    figures = figures_of_chart(name)
    unit = figures[0].unit
    return Chart(title or name, unit, tuple(_series(figure, unit) for figure in figures), stacked, top)


CPU = _chart("CPU", top=100.0)
CPU_SPEED = _chart(LABEL, stacked=False, top=100.0)
MEMORY = _chart("Memory", top="memory_total_bytes")
ORDERED_MEMORY = _chart("Ordered memory", top="ordered_memory_limit_bytes", title=f"{ORDERED_HOST.capitalize()} memory")
"""The upper edge is the limit."""
_DISK = "Disk"
DISK_BUSY = _chart("Disk busy", top=100.0, title=_DISK)
DISK_WAIT = _chart("Disk wait", title=_DISK)
DISK_RATE = _chart("Disk rate", stacked=False, title=_DISK)
KSM = _chart("KSM")
PRESSURE = _chart("Pressure", stacked=False, top=100.0)
NETWORK = _chart("Lab network")


def chart_of(chart: Chart, ordered: Sequence[str]) -> Chart:
    """What stands in the place of `chart` on a host with parts that were not its own, whose words are `ordered`."""
    return ORDERED_MEMORY if chart is MEMORY and ORDERED_HOST in ordered else chart


def title_of(chart: Chart, ordered: Sequence[str]) -> str:
    """The title of a chart on a host with parts that were not its own, whose words are `ordered`."""
    return EMULATED_DISK.capitalize() if is_of_disk(chart) and EMULATED_DISK in ordered else chart.title


def is_of_disk(chart: Chart) -> bool:
    """Whether `chart` has figures of the disk that the guests' files are on."""
    return chart.title == _DISK
