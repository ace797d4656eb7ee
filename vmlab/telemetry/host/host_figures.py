"""Figures of the host: how each is shown, what they come from, and all of them in their order in tables.

The groups that this host has are read together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from vmlab.model.sample import unit_of
from vmlab.system.entry_points import HOST_FIGURES, Entry, Loaded, leave_out, said
from vmlab.telemetry.source import NAN, THE_HOST, Roots
from vmlab.telemetry.told_once import once

if TYPE_CHECKING:
    from vmlab.telemetry.host.ordered_host import GroupFiles
    from vmlab.telemetry.lab_cpu import Scope


Terms = tuple[tuple[str, int], ...]
"""Names of values, each with +1 or -1: the terms of a sum."""


class HostChart(NamedTuple):
    """Figures that share one scale, in console and report alike; each is declared beside the code that samples them.

    `stacked` figures add up, others are lines. `top` is the end of the scale: a number, the name of a value such as the
    total of memory, or None for the largest value in sight. The console shows charts in the order of `panel`, with
    `title` where that is not the `name`; one without a panel stands in the place of another. A report has the chart
    where `page` says its unit there, and a timeline has it with the label `track`, if that says something. What is not
    `whole` has on a page its headlines alone, up to the largest value.
    """

    name: str
    panel: int | None = None
    stacked: bool = True
    top: float | str | None = None
    title: str = ""
    page: str = ""
    track: str = ""
    whole: bool = True


class HostFigure(NamedTuple):
    """One value of a sample as people see it. Its unit is the ending of its `name`, see `model.sample.unit_of`.

    `label` is its name in a table, `short` its name where the group is named already. `group` is its line in `vmlab
    top`, empty for none. A `headline` is in every document, report and comparison; one `of_stages` is also in the table
    of a cell's stages. `chart` is the chart that shows it, None for none, in the colour `tone`; a `minor` one is left
    out where room is short; one that is not `drawn` is a number above the chart only, and an `idle` one is no work: an
    outline over the areas. `added` are other values that its chart adds; `area` is what is drawn where that is not the
    number itself: dirty pages are part of the cache.
    """

    name: str
    label: str
    short: str
    group: str
    headline: bool = False
    of_stages: bool = False
    chart: HostChart | None = None
    tone: str = "one"
    minor: bool = False
    drawn: bool = True
    idle: bool = False
    added: tuple[str, ...] = ()
    area: Terms | None = None

    @property
    def unit(self) -> str:
        """As `unit_of` has it."""
        return unit_of(self.name)


Notify = Callable[[str], None]
"""A function that takes one line for people."""
LAST = 1000


class Group(Protocol):
    """Figures that come from the same files. The constructor raises OSError or ValueError where the files are missing.

    The first reading after construction is a starting point: values that need a difference are NaN.
    """

    @property
    def title(self) -> str:
        """What is reported to be missing when the group cannot be read."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values in order; a new object whenever the last reading changed them."""
        ...

    def read(self, mono: float, length: float) -> Sequence[float]:
        """Values parallel to `names`, for the `length` seconds that ended at `mono`.

        Raises OSError or ValueError where the files have disappeared or cannot be parsed.
        """
        ...


G = TypeVar("G")


class Watched(NamedTuple):
    """The host that is recorded, and what is known of the lab on it.

    `lab_folders` hold the lab's disk files, or are block devices of volume groups with its disks, `network` is the
    lab's bridge, if there is one. `scope` defines the CPU time of the lab: that of all processes of this PID namespace,
    or of this process alone. `notify` takes one line for people, and is called from any thread. The process `apart`, of
    an emulated disk, is counted as neither the lab's nor others' work. `ordered` is the limited host, if there is one.
    `outside` gives the lab's processes that are in no PID namespace of the lab, as the host numbers them. `made` are
    the groups that were made before.
    """

    roots: Roots = THE_HOST
    lab_folders: Sequence[Path] = ()
    network: str | None = None
    scope: Scope = "namespace"
    notify: Notify = lambda line: None
    apart: int | None = None
    ordered: GroupFiles | None = None
    outside: Callable[[], Iterable[int]] = tuple
    made: Sequence[Group] = ()

    def find(self, kind: type[G]) -> G | None:
        """The group of this type, if it was made before."""
        return next((one for one in self.made if isinstance(one, kind)), None)


class GroupMaker(NamedTuple):
    """What makes a group: None where there is nothing to read, OSError or ValueError where the files are missing.

    Many hosts lack the files of one that is not `usual`, and only `vmlab doctor` reports that.
    """

    title: str
    make: Callable[[Watched], Group | None]
    usual: bool = True


class FigureSource(NamedTuple):
    """Groups of figures, made and read in this order, and those of their figures that people are shown.

    Sources are read, and stand in tables, in the order of `place`; other packages leave that as it is.
    """

    groups: tuple[GroupMaker, ...] = ()
    figures: tuple[HostFigure, ...] = ()
    place: int = LAST


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
            leave_out(entry, f"there is a metric {taken[0]} already")
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
            raise ValueError("the chart is for vmlab's own metrics")
        if charted := [figure.name for figure in found.figures if figure.chart is not None or figure.of_stages]:
            raise ValueError(f"{charted[0]}: charts and tables of stages are for vmlab's own metrics")
    return entry, found


@cache
def host_figures() -> tuple[HostFigure, ...]:
    """All of them."""
    return tuple(figure for source in figure_sources().values() for figure in source.figures)


@cache
def headlines() -> tuple[HostFigure, ...]:
    """Those that every document has, and that reports and comparisons show."""
    return tuple(figure for figure in host_figures() if figure.headline)


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
    return tuple(chart for own in of_sources for chart in sorted(own, key=lambda one: one.panel or math.inf))


_NAME = re.compile(r"[a-z][a-z0-9_]*(\[[^\[\]]+\])?")


class Readings:
    """Reads groups one after the other. A group that fails gives NaN and is reported once."""

    def __init__(self, groups: Iterable[Group], notify: Notify) -> None:
        self.groups = list(groups)
        self._tell_once = once(notify)
        self._reads = [group.read for group in self.groups]
        self._owed: dict[int, float] = {}

    def read(self, mono: float, length: float) -> list[float]:
        """The values of all groups in order, parallel to `names` as it is after the call."""
        values: list[float] = []
        owed = self._owed
        for place, read in enumerate(self._reads):
            try:
                # The last reading of a group that failed is older, so its differences span more than one tick.
                values += read(mono, owed[place] + length if place in owed else length)
                if place in owed:
                    del owed[place]
            except (OSError, ValueError, IndexError) as error:
                owed[place] = owed.get(place, 0.0) + length
                values += self._failed(self.groups[place], error)
        return values

    def _failed(self, group: Group, error: Exception) -> list[float]:
        self._tell_once(group.title, f"no metrics for {group.title} for now: {error}")
        return [NAN] * len(group.names)

    def parts(self) -> list[tuple[str, ...]]:
        """The names of each group."""
        return [group.names for group in self.groups]


def host_groups(watched: Watched) -> list[Group]:
    """The groups that can be read here. One whose files are missing is left out, and one notice names it.

    Many hosts have no power figures, so only `vmlab doctor` reports that.
    """
    made: list[Group] = []
    for entry, source in figure_sources().items():
        for maker in source.groups:
            if (group := _made(watched._replace(made=made), entry, maker)) is not None:
                made.append(group)
    return made


def _made(watched: Watched, entry: Entry, maker: GroupMaker) -> Group | None:
    """A group that was read once; one notice says why it cannot be read here."""
    try:
        group = maker.make(watched)
        if group is not None and not entry.is_own:
            group = GuardedGroup(group, entry, {name for one in watched.made for name in one.names})
        if group is not None:
            group.read(0.0, 1.0)
        return group
    except (OSError, ValueError, IndexError) as error:
        if maker.usual:
            watched.notify(f"no metrics for {maker.title} here: {error}")
    except Exception as error:
        if entry.is_own:
            raise
        watched.notify(f"no metrics for {maker.title} here: {entry.words}: {said(error)}")
    return None


class GuardedGroup:
    """A group of another package: whatever is wrong with a reading is a ValueError, which leaves its values unknown."""

    def __init__(self, group: Group, entry: Entry, taken: Iterable[str]) -> None:
        self.title = f"{group.title} ({entry.package} {entry.version})"
        self._group = group
        self._taken = frozenset(taken)
        self.names: tuple[str, ...] = ()
        self._known: object = None

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`. Raises ValueError for anything that goes wrong."""
        try:
            values = [float(value) for value in self._group.read(mono, length)]
            names = self._group.names
        except Exception as error:
            raise ValueError(said(error)) from error
        if names is not self._known:
            self.names, self._known = self._checked(names), names
        if len(values) != len(self.names):
            raise ValueError(f"{len(values)} values for {len(self.names)} names")
        return values

    def _checked(self, names: object) -> tuple[str, ...]:
        found = tuple(names) if isinstance(names, tuple | list) else ()
        if wrong := [name for name in found if not (isinstance(name, str) and _NAME.fullmatch(name))]:
            raise ValueError(f"{wrong[0]!r} is no name of a value")
        if twice := [name for name in found if name in self._taken or found.count(name) > 1]:
            raise ValueError(f"two values are called {twice[0]}")
        return found
