"""The charts of the Live screen; the table of host figures defines the content of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmlab.model.ordered import EMULATED_DISK, ORDERED_HOST
from vmlab.telemetry.cpu_speed import LABEL
from vmlab.telemetry.host.host_figures import HostChart, HostFigure, Terms, charts, figures_of_chart


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
    """Series that share one scale. `unit` is ``%``, ``ms``, ``B`` or ``B/s``; `stacked` and `top` as of `HostChart`."""

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


def _chart(host: HostChart) -> Chart:
    """With the unit of its first figure."""
    figures = figures_of_chart(host)
    unit = figures[0].unit
    series = tuple(_series(figure, unit) for figure in figures)
    return Chart(host.title or host.name, unit, series, host.stacked, host.top)


_CHARTS = {host: _chart(host) for host in charts()}
_BY_NAME = {host.name: chart for host, chart in _CHARTS.items()}
CPU, CPU_SPEED, MEMORY, ORDERED_MEMORY = (_BY_NAME[name] for name in ("CPU", LABEL, "Memory", "Ordered memory"))
DISK_BUSY, DISK_WAIT, DISK_RATE = (_BY_NAME[f"Disk {name}"] for name in ("busy", "wait", "rate"))
KSM, PRESSURE = _BY_NAME["KSM"], _BY_NAME["Pressure"]
IN_PANELS = tuple(_CHARTS[host] for host in sorted(_CHARTS, key=lambda one: one.panel or 0) if host.panel is not None)
"""Those that do not stand in the place of another, in their order."""


def chart_of(chart: Chart, ordered: Sequence[str]) -> Chart:
    """What stands in the place of `chart` on a host with parts that were not its own, whose words are `ordered`."""
    return ORDERED_MEMORY if chart is MEMORY and ORDERED_HOST in ordered else chart


def title_of(chart: Chart, ordered: Sequence[str]) -> str:
    """The title of a chart on a host with parts that were not its own, whose words are `ordered`."""
    return EMULATED_DISK.capitalize() if is_of_disk(chart) and EMULATED_DISK in ordered else chart.title


def is_of_disk(chart: Chart) -> bool:
    """Whether `chart` has figures of the disk that the guests' files are on."""
    return chart.title == DISK_BUSY.title
