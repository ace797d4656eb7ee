"""libvirt's QEMU driver inside the runner: no daemon, nothing to configure, gone with the runner's namespace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.isolation.host_cgroups import OrderedHost
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.lab_network import AddressServer, make_bridge, remove_bridge
from vmlab.hypervisor.libvirt.calls import ASK, OPEN, STOP, call
from vmlab.hypervisor.libvirt.domain_watch import DomainEvents, DomainWatch
from vmlab.hypervisor.libvirt.libvirt_root import LibvirtRoot, on_one_cpu, root_folder
from vmlab.hypervisor.libvirt_hypervisor import LibvirtHypervisor
from vmlab.hypervisor.protocols import LabNetwork
from vmlab.model.errors import HypervisorError, HypervisorUnavailable
from vmlab.model.names import BRIDGE, NETWORK
from vmlab.model.places import cache_folder
from vmlab.model.results import NetworkCounts

if TYPE_CHECKING:
    from vmlab.hypervisor.overlay_network.guest_networks import GuestNetworks

_START = 120.0


class EmbeddedHypervisor(LibvirtHypervisor):
    """`protocols.Hypervisor` by ``qemu:///embed``; to be used only inside `namespace.run_isolated`.

    `runtime` is a short folder for sockets; for the rest see `LibvirtHypervisor`. The guests are in the `ordered` host,
    if there is one, and may have `huge_pages` of these sizes, in bytes.
    """

    def __init__(
        self,
        runtime: Path,
        disks: Path,
        lab: str,
        on_notice: Callable[[str], None] | None = None,
        *,
        kernel: Path | None = None,
        journal: Journal | None = None,
        ordered: OrderedHost | None = None,
        huge_pages: Collection[int] = (),
    ) -> None:
        self._root = LibvirtRoot(root_folder(runtime))
        self._ordered = ordered
        self._page_sizes = huge_pages
        self._partition = None if ordered is None else ordered.partition
        self._ordered_cpus = None if ordered is None else ordered.size.cpus
        self._addresses = AddressServer()
        self._networks: GuestNetworks | None = None
        places = self._root.places
        watch = DomainWatch(places, self._console_of, (lambda: "") if ordered is None else ordered.why_killed)
        super().__init__(places, disks, lab, on_notice, watch, kind="embedded", kernel=kernel, journal=journal)

    @property
    def network(self) -> LabNetwork:
        """The bridge in the lab's own network namespace, where every address is free."""
        return LabNetwork(BRIDGE, NETWORK)

    async def open(self) -> None:
        """Connect and make the lab's bridge. Raises HypervisorUnavailable, also outside the lab's namespaces."""
        require_isolation()
        try:
            self._connection = await call("opening libvirt", OPEN, self._opened, self.watch.begin())
        except (HypervisorError, OSError) as error:
            raise HypervisorUnavailable(str(error), remedy="vmlab doctor") from error
        if "cpu" not in cgroups.available_controllers(cgroups.hierarchies()):
            self._notice("this host has no cpu cgroup controller: CPU shares cannot be set")

    def _opened(self, events: DomainEvents) -> Any:
        """libvirt's connection, with all that it needs around it: its folder, its cgroups, the lab's bridge; blocks.

        Raises libvirtError, HypervisorError, RefusedError where a limited host cannot be had, OSError.
        """
        mounts, ordered = cgroups.hierarchies(), self._ordered
        self.journal.add(JournalEntry("folder", str(self._root.folder)))
        self._root.make(self._lab)
        cgroups.hold_all(cgroups.prefix_of(self._root.folder), mounts, self.journal, ordered=ordered is not None)
        if ordered is not None:
            ordered.make()
        controllers = cgroups.available_controllers(mounts) if ordered is None else ordered.controllers
        self._root.prepare(controllers, known_capabilities(), self._page_sizes)
        with on_one_cpu():
            connection = events.connect(self._root.uri)
        make_bridge()
        return connection

    async def network_counts(self, specs: list[DomainSpec]) -> NetworkCounts:
        """Read from the kernel's counters of the tunnel, the taps and the limits' devices."""
        return await call("counting the guests' networks", STOP, self._own_networks().counts, specs)

    async def _serve(self, addresses: Mapping[str, str]) -> None:
        await self._addresses.serve(addresses)

    async def _stop_serving(self) -> None:
        await self._addresses.stop()

    async def _make_networks(self, specs: list[DomainSpec]) -> None:
        if self._networks is not None or any(spec.resources.beyond_bridge for spec in specs):
            await call("making the guests' networks", _START, self._own_networks().make, specs)

    async def _limit(self, spec: DomainSpec) -> None:
        if spec.network and spec.resources.bandwidth is not None:
            await call(f"{spec.name}: limiting its bandwidth", _START, self._own_networks().limit, spec)

    async def _started(self, spec: DomainSpec, domain: Any) -> None:
        if self._ordered is not None:
            self._ordered.require_inside(self.watch.pid_of(spec.name, domain))
        if spec.resources.pool is not None:
            from vmlab.hypervisor.ceph.rbd import require_host_network

            require_host_network(self.watch.pid_of(spec.name, domain), spec.name)

    def _all_stats(self, which: int, flags: int) -> list[tuple[Any, dict[str, Any]]]:
        # No domain of anybody else is in a libvirt of the lab's own.
        found: list[tuple[Any, dict[str, Any]]] = self._connection.getAllDomainStats(which, flags)
        return found

    def _forget(self, name: str) -> None:
        super()._forget(name)
        if self._networks is not None:
            self._networks.release(name)

    async def _disconnect(self) -> None:
        try:
            self._root.remember(known_capabilities())
        except OSError as error:
            # Without it the next run takes a second longer to begin.
            self._notice(f"what libvirt learned about QEMU cannot be kept: {error}")
        await super()._disconnect()
        if self._networks is not None:
            await call("removing the guests' networks", ASK, self._networks.close)
        await call("removing the bridge", ASK, remove_bridge)

    async def _clear_up(self) -> None:
        if self._ordered is not None:
            self._ordered.close()
        await super()._clear_up()

    def _own_networks(self) -> GuestNetworks:
        """What guests have of networks beside the lab's bridge; made for the first guest that asks for it."""
        if self._networks is None:
            from vmlab.hypervisor.overlay_network.guest_networks import GuestNetworks

            self._networks = GuestNetworks(self._lookup)
        return self._networks


def known_capabilities() -> Path:
    """The folder that keeps libvirt's cache on QEMU from run to run."""
    return cache_folder() / "libvirt"
