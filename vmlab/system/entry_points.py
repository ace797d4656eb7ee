"""What packages add to vmlab, by entry points: its own are found like others', and one that is broken is left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from vmlab.model.errors import RefusedError, in_one_line

if TYPE_CHECKING:
    from importlib.metadata import Distribution, SelectableGroups

WORKLOADS, EXPORTS, HOST_FIGURES = "vmlab.workloads", "vmlab.exports", "vmlab.host_figures"
GROUPS = {WORKLOADS: "workload", EXPORTS: "export format", HOST_FIGURES: "host figures"}
"""The groups of entry points, and what one of each is called."""
_PROJECT = "vmlab"
_LONGEST = 300
T = TypeVar("T")


class Entry(NamedTuple):
    """One entry point: its group and name, and the package that has it. `place` is ``MODULE:NAME``."""

    group: str
    name: str
    place: str
    package: str
    version: str

    @property
    def is_own(self) -> bool:
        """Whether vmlab itself has it."""
        return self.package == _PROJECT

    @property
    def words(self) -> str:
        """``workload primes of vmlab-primes 1.0``."""
        return f"{GROUPS[self.group]} {self.name} of {self.package} {self.version}"


class Broken(NamedTuple):
    """An entry point of another package that is left out, and why, in one line."""

    entry: Entry
    why: str

    @property
    def line(self) -> str:
        """The line for the user."""
        return f"{self.entry.words} is left out: {self.why}"


_entries: dict[str, tuple[Entry, ...]] = {}
_broken: dict[tuple[str, str, str], Broken] = {}


def entries(group: str) -> tuple[Entry, ...]:
    """The entry points of `group`, in the order of their names, vmlab's own first. Nothing of them is imported.

    Raises RefusedError where those of vmlab itself are not known: it was not installed, or is another version.
    """
    if group not in _entries:
        found = sorted(_found(group), key=lambda one: (not one.is_own, one.name, one.package))
        if not any(one.is_own for one in found):
            raise RefusedError(f"this vmlab is not installed: no {GROUPS[group]} of it is known", remedy="make setup")
        _entries[group] = tuple(found)
    return _entries[group]


@cache
def _all() -> SelectableGroups:
    # Imported late: it takes longer than all else here.
    from importlib.metadata import entry_points

    return entry_points()


def _found(group: str) -> Iterator[Entry]:
    for point in _all().select(group=group):
        yield Entry(group, point.name, point.value, *_package(point.dist))


@cache
def _package(dist: Distribution | None) -> tuple[str, str]:
    """Name and version; cached, as each question reads the package's metadata anew."""
    return ("an unnamed package", "?") if dist is None else (dist.name, dist.version)


class Loaded(Mapping[str, T]):
    """What the entry points of `group` name, by their names, as `check` gives it back; loaded when asked for.

    One of another package that cannot be imported, that `check` raises for, or whose name is taken, is left out and
    among `broken`. What is wrong with vmlab's own is raised.
    """

    def __init__(self, group: str, check: Callable[[Entry, object], T]) -> None:
        self._group, self._check = group, check
        self._found: dict[str, T | None] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._found:
            self._found[name] = self._first(name)
        found = self._found[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in dict.fromkeys(entry.name for entry in entries(self._group)) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _first(self, name: str) -> T | None:
        found: T | None = None
        for entry in (entry for entry in entries(self._group) if entry.name == name):
            if found is None:
                found = self._tried(entry)
            elif entry.is_own:
                raise ImportError(f"two entry points of {self._group} are called {name}: {found!r} is the other")
            else:
                leave_out(entry, f"the name {name} is taken")
        return found

    def _tried(self, entry: Entry) -> T | None:
        try:
            return self._check(entry, _load(entry))
        except (Exception, SystemExit) as error:
            # An installation may leave a folder of vmlab's own out.
            absent = isinstance(error, ModuleNotFoundError) and entry.place.startswith(str(error.name))
            if entry.is_own and not absent:
                raise
            if not entry.is_own:
                leave_out(entry, said(error))
            return None


def _load(entry: Entry) -> object:
    from importlib.metadata import EntryPoint

    loaded: object = EntryPoint(entry.name, entry.place, entry.group).load()
    return loaded


def leave_out(entry: Entry, why: str) -> None:
    """Note that `entry` is not used."""
    _broken.setdefault((entry.group, entry.name, entry.package), Broken(entry, why))


def said(error: BaseException) -> str:
    """An error of a package as one line, with its type where the text alone says too little."""
    line = " ".join((in_one_line(error) if isinstance(error, OSError) else str(error)).split())
    return f"{type(error).__name__}{': ' if line else ''}{line}"[:_LONGEST]


def broken() -> tuple[Broken, ...]:
    """The entry points that were left out so far, of the groups that were loaded."""
    return tuple(_broken.values())


def others_of(group: str, names: Collection[str]) -> list[Entry]:
    """The entry points of other packages that have one of these names, the first of each name."""
    first: dict[str, Entry] = {}
    for one in entries(group):
        first.setdefault(one.name, one)
    return [one for name, one in first.items() if name in names and not one.is_own]


def other_packages() -> dict[str, str]:
    """The version of each other package that adds something, by its name."""
    every = [one for group in GROUPS for one in entries(group) if not one.is_own]
    return {one.package: one.version for one in sorted(every, key=lambda one: one.package)}
