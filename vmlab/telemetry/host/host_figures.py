"""All figures of the host that are shown to people, in their order in tables and documents."""

from __future__ import annotations

from vmlab.telemetry import cpu_speed
from vmlab.telemetry.host import disk, host_cpu, host_memory, ksm, network, ordered_host, pressure
from vmlab.telemetry.host.shown_figure import HostFigure

HOST_FIGURES: tuple[HostFigure, ...] = (
    *host_cpu.FIGURES,
    *cpu_speed.FIGURES,
    *disk.FIGURES,
    *host_memory.FIGURES,
    *ordered_host.FIGURES,
    *ksm.FIGURES,
    *pressure.FIGURES,
    *network.FIGURES,
)

HEADLINES: tuple[HostFigure, ...] = tuple(figure for figure in HOST_FIGURES if figure.headline)
"""Those that every document has, and that reports and comparisons show."""
_BY_NAME = {figure.name: figure for figure in HOST_FIGURES}


def host_figure(name: str) -> HostFigure:
    """The figure of one value. Raises KeyError for a value that is shown nowhere."""
    return _BY_NAME[name]


def figures_of_group(group: str) -> tuple[HostFigure, ...]:
    """The figures of one line of `vmlab top`."""
    return tuple(figure for figure in HOST_FIGURES if figure.group == group)


def figures_of_chart(chart: str) -> tuple[HostFigure, ...]:
    """The figures of one chart of the console."""
    return tuple(figure for figure in HOST_FIGURES if figure.chart == chart)
