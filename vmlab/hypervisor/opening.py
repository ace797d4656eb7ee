"""How an embedded libvirt is opened, with all that it needs around it: its folder, its cgroups, the lab's bridge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libvirt

from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.isolation.host_cgroups import OrderedHost
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.libvirt.events import DomainEvents, load_schema, start_event_loop
from vmlab.hypervisor.libvirt.libvirt_root import LibvirtRoot, on_one_cpu
from vmlab.hypervisor.network.bridge import make_bridge
from vmlab.model.places import cache_folder


def open_libvirt(
    root: LibvirtRoot,
    lab: str,
    journal: Journal,
    events: DomainEvents,
    ordered: OrderedHost | None = None,
) -> Any:
    """The connection of lab `lab`, with `events` registered; blocks. Its guests are in the `ordered` host, if there is
    one.

    Raises libvirtError, HypervisorError, RefusedError where that host cannot be had, OSError.
    """
    mounts = cgroups.hierarchies()
    journal.add(JournalEntry("folder", str(root.folder)))
    root.make(lab)
    _hold_cgroups(root, journal, mounts, ordered=ordered is not None)
    if ordered is not None:
        ordered.make()
    controllers = cgroups.available_controllers(mounts) if ordered is None else ordered.controllers
    root.prepare(controllers, known_capabilities())
    start_event_loop()
    with on_one_cpu():
        connection = libvirt.open(root.uri)
    events.register(connection)
    load_schema(connection)
    make_bridge()
    return connection


def known_capabilities() -> Path:
    """The folder that keeps libvirt's cache on QEMU from run to run."""
    return cache_folder() / "libvirt"


def _hold_cgroups(root: LibvirtRoot, journal: Journal, mounts: list[cgroups.Mount], *, ordered: bool) -> None:
    prefix = cgroups.prefix_of(root.folder)
    partitions = cgroups.partitions(mounts, ordered=ordered)
    for partition in partitions:
        if not cgroups.is_shared(partition):
            journal.add(JournalEntry("partition", str(partition)))
    journal.add(JournalEntry("cgroups", prefix))
    for partition in partitions:
        cgroups.hold(partition, prefix)
