"""All figures of the host that are shown to people, in their order in tables and documents."""

from __future__ import annotations

from functools import cache

from vmlab.system.entry_points import HOST_FIGURES, Entry, Loaded, leave_out
from vmlab.telemetry.host.group import LAST, FigureSource
from vmlab.telemetry.host.shown_figure import HostChart, HostFigure


@cache
def figure_sources() -> dict[Entry, FigureSource]:
    """The sources of figures in their order, vmlab's own first. One of another package that cannot be used is left out.

    A figure whose name is taken leaves out all of its source.
    """
    found = Loaded(HOST_FIGURES, _checked)
    kept: dict[Entry, FigureSource] = {}
    names: set[str] = set()
    for entry, source in sorted(found.values(), key=lambda one: one[1].place):
        own = [figure.name for figure in source.figures]
        taken = sorted(names.intersection(own))
        if taken:
            leave_out(entry, f"there is a figure {taken[0]} already")
            continue
        names.update(own)
        kept[entry] = source
    return kept


def _checked(entry: Entry, found: object) -> tuple[Entry, FigureSource]:
    """The source of an entry point. Raises TypeError or ValueError for what tables and charts would stumble over."""
    if not isinstance(found, FigureSource):
        raise TypeError(f"{entry.place} is no FigureSource")
    if not entry.is_own:
        if found.place != LAST:
            raise ValueError("the place is for vmlab's own figures")
        if charted := [figure.name for figure in found.figures if figure.chart is not None or figure.of_stages]:
            raise ValueError(f"{charted[0]}: charts and tables of stages are for vmlab's own figures")
    return entry, found


@cache
def host_figures() -> tuple[HostFigure, ...]:
    """All of them."""
    return tuple(figure for source in figure_sources().values() for figure in source.figures)


@cache
def headlines() -> tuple[HostFigure, ...]:
    """Those that every document has, and that reports and comparisons show."""
    return tuple(figure for figure in host_figures() if figure.headline)


def host_figure(name: str) -> HostFigure:
    """The figure of one value. Raises KeyError for a value that is shown nowhere."""
    return _by_name()[name]


@cache
def _by_name() -> dict[str, HostFigure]:
    return {figure.name: figure for figure in host_figures()}


def figures_of_group(group: str) -> tuple[HostFigure, ...]:
    """The figures of one line of `vmlab top`."""
    return tuple(figure for figure in host_figures() if figure.group == group)


def groups() -> tuple[str, ...]:
    """The lines of `vmlab top`."""
    return tuple(dict.fromkeys(figure.group for figure in host_figures() if figure.group))


def figures_of_chart(chart: HostChart) -> tuple[HostFigure, ...]:
    """The figures of one chart."""
    return tuple(figure for figure in host_figures() if figure.chart == chart)


@cache
def charts() -> tuple[HostChart, ...]:
    """All charts, those of each source together in the order of their panels."""
    of_sources = (
        dict.fromkeys(one.chart for one in source.figures if one.chart) for source in figure_sources().values()
    )
    return tuple(chart for own in of_sources for chart in sorted(own, key=lambda one: one.panel or 0))
