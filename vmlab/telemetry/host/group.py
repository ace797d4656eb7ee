"""What figures of the host come from, as the recorder sees it; each source is the object of an entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from vmlab.telemetry.host.shown_figure import HostFigure
from vmlab.telemetry.source import Roots

if TYPE_CHECKING:
    from vmlab.telemetry.host.ordered_host import GroupFiles
    from vmlab.telemetry.lab_cpu import Scope

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

    `lab_folders` hold the lab's disks, `network` is the lab's bridge, if there is one. The process `apart` is counted
    as neither the lab's nor others' work. `ordered` is the ordered host, if there is one. `outside` gives the lab's
    processes outside of its PID namespace. `notify` takes one line for people. `made` are the groups that were made
    before.
    """

    roots: Roots
    lab_folders: Sequence[Path]
    network: str | None
    scope: Scope
    notify: Notify
    apart: int | None
    ordered: GroupFiles | None
    outside: Callable[[], Iterable[int]]
    made: list[Group]

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
