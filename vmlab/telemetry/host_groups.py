"""All groups of figures that this host has, and one reading of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from vmlab.telemetry.host.counter import NAN
from vmlab.telemetry.host.disk import Disks
from vmlab.telemetry.host.group import Group
from vmlab.telemetry.host.host_cpu import CpuShares
from vmlab.telemetry.host.host_memory import Memory, Paging
from vmlab.telemetry.host.ksm import Ksm, Ksmd
from vmlab.telemetry.host.network import BridgeTraffic
from vmlab.telemetry.host.ordered_host import GroupFiles, OrderedHost
from vmlab.telemetry.host.power import Power
from vmlab.telemetry.host.pressure import Pressure
from vmlab.telemetry.lab_cpu import OutsideLab, Scope
from vmlab.telemetry.place import disks_under
from vmlab.telemetry.source import Roots

Notify = Callable[[str], None]
"""A function that takes one line for people."""


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


def host_groups(
    roots: Roots,
    lab_folders: Sequence[Path],
    network: str | None,
    scope: Scope,
    notify: Notify,
    apart: int | None = None,
    ordered: GroupFiles | None = None,
    outside: Callable[[], Iterable[int]] = tuple,
) -> list[Group]:
    """The groups that can be read here. One whose files are missing is left out, and one notice names it.

    The process `apart` is counted as neither the lab's nor others' work. `ordered` is the ordered host, if there is
    one. `outside` gives the lab's processes outside of its PID namespace.
    Many hosts have no power figures, so only `vmlab doctor` reports that.
    """
    found: list[Group] = []

    def add(title: str, make: Callable[[], Group], *, usual: bool = True) -> Group | None:
        try:
            group = make()
            group.read(0.0, 1.0)
        except (OSError, ValueError, IndexError) as error:
            if usual:
                notify(f"no figures for {title} here: {error}")
            return None
        found.append(group)
        return group

    cpu = add(CpuShares.title, lambda: CpuShares(roots))
    if isinstance(cpu, CpuShares):
        add(OutsideLab.title, lambda: OutsideLab(roots, cpu, scope, apart, outside))
    add(Disks.title, lambda: Disks(roots, disks_under(lab_folders, roots, notify)))
    memory = add(Memory.title, lambda: Memory(roots))
    if isinstance(memory, Memory):
        add(Paging.title, lambda: Paging(roots, memory))
    if ordered is not None and isinstance(cpu, CpuShares) and isinstance(memory, Memory):
        add(OrderedHost.title, lambda: OrderedHost(ordered, cpu.count, int(memory.total_bytes)))
    ksm = add(Ksm.title, lambda: Ksm(roots))
    add(Ksmd.title, lambda: Ksmd(roots, ksm if isinstance(ksm, Ksm) else None))
    add(Pressure.title, lambda: Pressure(roots))
    if network is not None:
        add(BridgeTraffic.title, lambda: BridgeTraffic(roots, network))
    add(Power.title, lambda: Power(roots), usual=False)
    return found
