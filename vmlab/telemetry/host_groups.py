"""All groups of figures that this host has, and one reading of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vmlab.system.entry_points import Entry, said
from vmlab.telemetry.host.host_figures import Group, GroupMaker, Notify, Watched, figure_sources
from vmlab.telemetry.source import NAN

_NAME = re.compile(r"[a-z][a-z0-9_]*(\[[^\[\]]+\])?")


class Readings:
    """Reads groups one after the other. A group that fails gives NaN and is reported once."""

    def __init__(self, groups: Iterable[Group], notify: Notify) -> None:
        self.groups = list(groups)
        self._notify = notify
        self._reported: set[str] = set()
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
        if group.title not in self._reported:
            self._reported.add(group.title)
            self._notify(f"no figures for {group.title} for now: {error}")
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
            watched.notify(f"no figures for {maker.title} here: {error}")
    except Exception as error:
        if entry.is_own:
            raise
        watched.notify(f"no figures for {maker.title} here: {entry.words}: {said(error)}")
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
