"""libvirt's QEMU driver inside the runner: no daemon, nothing to configure, gone with the runner's namespace."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import libvirt
import libvirt_qemu

from vmlab.hypervisor.contract import BootImage, DiskLatency, DomainSpec, SavedGuest
from vmlab.hypervisor.disks.data_disks import DataDisks
from vmlab.hypervisor.disks.overlays import BackingFormat, make_overlay, require_direct
from vmlab.hypervisor.disks.running_disks import RunningDisks
from vmlab.hypervisor.freezing import frozen_files
from vmlab.hypervisor.freezing.ram_state import SharedState, read_state, released, write_state
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.isolation.host_cgroups import OrderedHost
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.libvirt.bulk_statistics import DomainStatistics
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.libvirt.domain_watch import DomainWatch
from vmlab.hypervisor.libvirt.domain_xml import DomainFiles, Platform, domain_name, domain_xml, nic_xml
from vmlab.hypervisor.libvirt.guest_memory import MERGE_SECONDS, set_mergeable
from vmlab.hypervisor.libvirt.libvirt_root import LibvirtRoot, root_folder
from vmlab.hypervisor.libvirt.memory_reserve import MemoryReserve
from vmlab.hypervisor.network.bridge import remove_bridge
from vmlab.hypervisor.network.dhcp import AddressServer
from vmlab.hypervisor.network.host_network_access import require_host_network
from vmlab.hypervisor.opening import known_capabilities, open_libvirt
from vmlab.hypervisor.platform_facts import PlatformFacts, version_words
from vmlab.model.concurrency import run_all, shielded
from vmlab.model.errors import DeadlineExceeded, GuestLost, HypervisorError, HypervisorUnavailable, SnapshotError
from vmlab.model.results import CacheProof, Drained, NetworkCounts
from vmlab.model.run import Accelerator, CacheMode
from vmlab.system.removal import remove_file

if TYPE_CHECKING:
    from vmlab.hypervisor.overlay_network.guest_networks import GuestNetworks

_OPEN = 60.0
_START = 120.0
_STATE = 180.0
_STOP = 40.0
_ASK = 10.0


class EmbeddedHypervisor:
    """`contract.Hypervisor` by ``qemu:///embed``; to be used only inside `namespace.run_isolated`.

    `runtime` is a short folder for sockets, `disks` takes overlays and console logs, `lab` is the run's id.
    `kernel` is what KVM is probed with when `accelerator` is asked before anything was created. `journal` is
    the run's, by default ``journal.jsonl`` beside `disks`. The guests are in the `ordered` host, if there is one.
    `other` is for the second of two hosts, see `make_bridge`.
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
        other: bool = False,
    ) -> None:
        self._ordered = ordered
        self._open_libvirt = partial(open_libvirt, other=other)
        self.journal = journal or Journal(disks.parent / "journal.jsonl")
        self._root = LibvirtRoot(root_folder(runtime))
        self._disks = disks
        self._lab = lab
        self._notice = on_notice or (lambda _words: None)
        self._platform_facts = PlatformFacts(lambda: self._connection, self._notice, kernel)
        self._addresses = AddressServer()
        self._networks: GuestNetworks | None = None
        self._data_disks = DataDisks(disks, lab, self.journal)
        self._running_disks = RunningDisks(self._root, self._data_disks, self._lookup, self._chain_of)
        self._images: dict[str, BootImage] = {}
        self._specs: dict[str, DomainSpec] = {}
        self._weights: dict[str, int | None] = {}
        self._files: dict[str, DomainFiles] = {}
        self._reserve = MemoryReserve()
        self._loaded: dict[str, int] = {}
        self._connection: Any = None
        why_killed = (lambda: "") if ordered is None else ordered.why_killed
        self._domain_watch = DomainWatch(self._root, self._console_of, why_killed)
        self._statistics = DomainStatistics(lambda: self._connection, self._short)

    async def open(self) -> None:
        """Connect and make the lab's bridge. Raises HypervisorUnavailable, also outside the lab's namespaces."""
        require_isolation()
        try:
            events = self._domain_watch.begin()
            self._connection = await call(
                "opening libvirt", _OPEN, self._open_libvirt, self._root, self._lab, self.journal, events, self._ordered
            )
        except (HypervisorError, OSError) as error:
            raise HypervisorUnavailable(str(error), remedy="vmlab doctor") from error
        if "cpu" not in cgroups.available_controllers(cgroups.hierarchies()):
            self._notice("this host has no cpu cgroup controller: CPU shares cannot be set")

    async def accelerator(self) -> Accelerator:
        """``kvm`` where the guests' own kernel boots under it, else ``tcg``. Asked once."""
        return await self._platform_facts.accelerator()

    async def facts(self) -> dict[str, Any]:
        """libvirt's and QEMU's versions, accelerator, machine type, CPU model. Asked once, as they do not change."""
        return await self._platform_facts.facts()

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        """Make overlays and start all domains, side by side. On an error, or a cancellation, none stays."""
        self._reserve.free()
        platform = await self._ready_for(image, specs)
        await self._addresses.serve({spec.mac: spec.address for spec in specs if spec.address is not None})
        await self._all_or_none(specs, [self._boot(spec.image or image, spec, platform) for spec in specs])

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, SavedGuest]) -> None:
        """Start all domains from saved states, side by side. On an error, or a cancellation, none stays."""
        platform = await self._ready_for(image, specs)
        facts = await self.facts()
        for spec in specs:
            folder, expected = saved[spec.name].folder, frozen_files.layout(spec, image, facts)
            await call(f"{spec.name}: looking at its snapshot", _ASK, frozen_files.require_fitting, folder, expected)
        folders = {saved[spec.name].folder: saved[spec.name].files[frozen_files.RAM] for spec in specs}
        states = {
            folder: SharedState(folder / frozen_files.RAM, expected, _STATE) for folder, expected in folders.items()
        }
        thawing = [self._thaw(image, one, platform, states[saved[one.name].folder], saved[one.name]) for one in specs]
        try:
            await self._all_or_none(specs, thawing)
        finally:
            # Guests that run are to find the memory that they would find without a reserve.
            self._reserve.free()
            await shielded(released(states.values()))
        # All together, when all are loaded: guests that run would take CPU time from those that load.
        await self._all_or_none(specs, [self._resume(spec) for spec in specs])

    async def _ready_for(self, image: BootImage, specs: list[DomainSpec]) -> Platform:
        self._platform_facts.kernel = self._platform_facts.kernel or image.kernel
        self._disks.mkdir(exist_ok=True)
        for mode in {spec.resources.cache for spec in specs}:
            require_direct(self._disks, mode)
            for folder in {(spec.image or image).disk.parent for spec in specs}:
                require_direct(folder, mode)
        if self._networks is not None or any(spec.resources.beyond_bridge for spec in specs):
            await call("making the guests' networks", _START, self._own_networks().make, specs)
        shares = {spec.name: spec.resources.cpu_shares for spec in specs}
        self._weights |= cgroups.weights(shares, cgroups.hierarchies())
        platform = await self._platform_facts.platform()
        self._platform_facts.say_emulated()
        return platform

    async def _all_or_none(self, specs: list[DomainSpec], starts: list[Coroutine[Any, Any, None]]) -> None:
        try:
            await run_all(starts)
        except BaseException:
            await shielded(self.destroy([spec.name for spec in specs]))
            raise

    async def _boot(self, image: BootImage, spec: DomainSpec, platform: Platform) -> None:
        domain = await self._start(image, spec, platform, None)
        self._domain_watch.watch(spec.name, domain, self._domain_watch.pid_of(spec.name, domain))
        await self._limit(spec)

    async def _start(self, image: BootImage, spec: DomainSpec, platform: Platform, disk: Path | None) -> Any:
        """Start one domain, which is returned; on a saved `disk` it stays paused and waits for its state."""
        # A start in libvirt cannot be cancelled; the domain would appear after the clean-up.
        return await shielded(self._made(image, spec, platform, disk))

    async def _made(self, image: BootImage, spec: DomainSpec, platform: Platform, disk: Path | None) -> Any:
        files = self._files_of(spec.name, disk)
        self._images[spec.name], self._specs[spec.name], self._files[spec.name] = image, spec, files
        for file in (files.overlay, files.console):
            self.journal.add(JournalEntry("file", str(file)))
        below: tuple[Path, BackingFormat] = (image.disk, "raw") if disk is None else (disk, "qcow2")
        size = spec.resources.disk_bytes
        await call(f"{spec.name}: making its disk", _START, make_overlay, below[0], files.overlay, size, below[1])
        weighted = replace(spec, resources=spec.resources.with_cpu_shares(self._weights[spec.name]))
        partition = None if self._ordered is None else self._ordered.partition
        if spec.resources.pool is not None:
            platform = await self._platform_facts.reaching()
        text = domain_xml(weighted, self._lab, image, files, platform, partition)
        flags = libvirt.VIR_DOMAIN_START_VALIDATE | (0 if disk is None else libvirt.VIR_DOMAIN_START_PAUSED)
        domain = await call(f"{spec.name}: starting", _START, self._connection.createXML, text, flags)
        if self._ordered is not None:
            self._ordered.require_inside(self._domain_watch.pid_of(spec.name, domain))
        if spec.resources.pool is not None:
            require_host_network(self._domain_watch.pid_of(spec.name, domain), spec.name)
        return domain

    async def _thaw(
        self, image: BootImage, spec: DomainSpec, platform: Platform, state: SharedState, saved: SavedGuest
    ) -> None:
        folder = saved.folder
        pid: int | None = None
        try:
            domain = await self._start(image, spec, platform, folder / frozen_files.DISK)
            pid = self._domain_watch.pid_of(spec.name, domain)
            self._loaded[spec.name] = state.size
            await read_state(domain, spec.name, state, _STATE, self._reserve.free)
        except SnapshotError:
            raise
        except (HypervisorError, DeadlineExceeded) as error:
            if pid is not None and (ending := await self._domain_watch.kill_of(pid)) is not None:
                raise GuestLost(spec.name, f"its QEMU died while its state was loaded: {ending}") from error
            why = self._root.last_words_of(domain_name(self._lab, spec.name)) or str(error)
            if frozen_files.blames_data(why):
                text = f"{spec.name}: snapshot {folder.name} does not load: {why}"
                raise SnapshotError(text, snapshot=folder.name) from error
            # Nothing says that the snapshot is at fault, so it is kept.
            raise HypervisorError(f"{spec.name}: cannot be restored from {folder.name}: {why}") from error
        self._domain_watch.watch(spec.name, domain, pid)
        if spec.network:
            live = libvirt.VIR_DOMAIN_AFFECT_LIVE
            await call(f"{spec.name}: plugging in its network", _ASK, domain.attachDeviceFlags, nic_xml(spec), live)
            await self._limit(spec)

    async def _limit(self, spec: DomainSpec) -> None:
        if spec.network and spec.resources.bandwidth is not None:
            await call(f"{spec.name}: limiting its bandwidth", _START, self._own_networks().limit, spec)

    async def _resume(self, spec: DomainSpec) -> None:
        await call(f"{spec.name}: resuming", _ASK, lambda: self._lookup(spec.name).resume())

    def _files_of(self, name: str, disk: Path | None) -> DomainFiles:
        return DomainFiles(
            overlay=self._disks / f"{name}.qcow2",
            console=self._console_of(name),
            agent=self._root.agent_socket(name),
            helper=self._root.helper_socket(name),
            frozen=disk,
        )

    def _console_of(self, name: str) -> Path:
        return self._disks / f"{name}.console"

    async def save(self, name: str, folder: Path) -> None:
        """Save a guest into `folder`; afterwards it is gone, also on an error."""
        try:
            if self._specs[name].network:
                raise HypervisorError(f"{name}: a guest with a network cannot be saved")
            described = frozen_files.layout(self._specs[name], self._images[name], await self.facts())
            domain = await call(f"{name}: looking it up", _ASK, self._lookup, name)
            xml = await call(f"{name}: its description", _ASK, domain.XMLDesc, 0)
            await call(f"{name}: stopping its processors", _ASK, domain.suspend)
            await write_state(domain, name, folder / frozen_files.RAM, _STATE)
            self._domain_watch.leave(name)
            await call(f"{name}: stopping", _STOP, self._stop, name)
            await call(f"{name}: keeping its disk", _STATE, frozen_files.keep_disk, self._files[name].overlay, folder)
            frozen_files.write_machine(folder, described, version_words(self._connection.getLibVersion()), xml)
        except OSError as error:
            raise HypervisorError(f"{name}: cannot be saved: {error}") from error
        finally:
            await shielded(self.destroy([name]))

    async def plug_data_disks(self, specs: list[DomainSpec]) -> None:
        """Plug in the data disk of each guest that has one; its kernel sees it some moments later."""
        having = [spec for spec in specs if spec.resources.data_bytes is not None]
        await run_all(self._data_disks.plug(spec, self._lookup) for spec in having)

    async def prove_cache(self, specs: list[DomainSpec]) -> list[CacheProof]:
        """For each guest overlay, a restored one's saved disk, image, and its data disk; see `cache_proof`."""
        return await self._running_disks.prove(specs)

    async def drain_disks(self, specs: list[DomainSpec], deadline: float) -> Drained:
        """Write the dirty pages of the guests' disks until few are left; see `cache_switch`."""
        return await self._running_disks.drain(specs, deadline)

    async def switch_cache(self, specs: list[DomainSpec], mode: CacheMode) -> dict[str, float]:
        """Switch all disks of the guests, those that were plugged in too; see `cache_switch`."""
        for folder in {self._disks, *(image.disk.parent for image in self._images.values())}:
            require_direct(folder, mode)
        platform = await self._platform_facts.platform()

        def describe(spec: DomainSpec) -> str:
            return domain_xml(spec, self._lab, self._images[spec.name], self._files[spec.name], platform)

        return await self._running_disks.switch(specs, mode, describe)

    async def begin_latency(self, name: str) -> None:
        """By QEMU's own histograms; see `latency_histograms`."""
        await self._running_disks.begin_latency(name)

    async def disk_latency(self, name: str) -> DiskLatency:
        """From QEMU's own histograms; see `latency_histograms`."""
        return await self._running_disks.latency(name)

    async def network_counts(self, specs: list[DomainSpec]) -> NetworkCounts:
        """Read from the kernel's counters of the tunnel, the taps and the limits' devices."""
        return await call("counting the guests' networks", _STOP, self._own_networks().counts, specs)

    async def make_mergeable(self, names: list[str], mergeable: bool) -> dict[str, float]:
        """Have QEMU tell the kernel so of all their memory; see `guest_memory`."""
        return {
            name: await call(f"{name}: unmerging its memory", MERGE_SECONDS, self._set_mergeable, name, mergeable)
            for name in names
        }

    def _set_mergeable(self, name: str, mergeable: bool) -> float:
        return set_mergeable(self._lookup(name), mergeable)

    def _chain_of(self, name: str) -> list[Path]:
        files = self._files[name]
        return [file for file in (files.overlay, files.frozen, self._images[name].disk) if file is not None]

    async def agent(
        self, name: str, command: str, arguments: dict[str, Any] | None = None, *, deadline: float = 10.0
    ) -> Any:
        """One command to the guest agent; its ``return`` value."""
        request = {"execute": command} if arguments is None else {"execute": command, "arguments": arguments}

        def ask() -> Any:
            domain = self._lookup(name)
            return libvirt_qemu.qemuAgentCommand(domain, json.dumps(request), math.ceil(deadline), 0)

        answer = await call(f"{name}: {command}", deadline, ask)
        try:
            return json.loads(answer)["return"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise HypervisorError(f"{name}: its guest agent said what cannot be read: {answer[:100]!r}") from error

    def helper_socket(self, name: str) -> Path:
        """Where QEMU listens for the guest's helper."""
        return self._root.helper_socket(name)

    async def cpu_seconds(self, names: list[str]) -> dict[str, float]:
        """CPU time by guest, in seconds. Raises HypervisorError where one does not run."""
        return await self._statistics.cpu_seconds(names)

    async def domain_stats(self) -> dict[str, dict[str, int]]:
        """libvirt's bulk statistics, its numbers alone, by the guest's name; see `DomainStatistics`."""
        return await self._statistics.domain_stats()

    async def until_lost(self, names: Collection[str]) -> NoReturn:
        """Raise GuestLost for the first of these guests that dies or is stopped by a disk error; see `DomainWatch`."""
        await self._domain_watch.until_lost(names)

    async def standstill(self, names: Collection[str]) -> dict[str, float]:
        """Seconds for which each guest's QEMU was stopped since it started."""
        return {name: self._domain_watch.standstill(name) for name in names}

    def pids(self, names: Collection[str]) -> dict[str, int]:
        """The QEMU of each guest that runs, by the guest's name."""
        return self._domain_watch.pids(names)

    async def destroy(self, names: list[str]) -> None:
        """Stop domains at once and delete their overlays; guests that have ended already are ignored."""
        for name in names:
            self._domain_watch.leave(name)
        deadline = _STOP + self._data_disks.seconds_to_release(names)
        loaded = {name: self._loaded.pop(name, 0) for name in names}
        if self._loaded:
            # Others go on, and their host is to have the memory.
            loaded = dict.fromkeys(names, 0)
        results = await asyncio.gather(
            *(call(f"{name}: stopping", deadline, self._destroy, name, loaded[name]) for name in names),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _stop(self, name: str) -> None:
        try:
            self._lookup(name).destroy()
        except libvirt.libvirtError as error:
            if error.get_error_code() not in (libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID):
                raise

    def _destroy(self, name: str, reserved: int) -> None:
        self._stop(name)
        self._reserve.take(reserved)
        self._root.forget(domain_name(self._lab, name))
        files = self._files_of(name, None)
        for file in (files.overlay, files.console):
            remove_file(file)
            self.journal.strike(JournalEntry("file", str(file)))
        self._data_disks.release(name)
        if self._networks is not None:
            self._networks.release(name)

    async def close(self) -> None:
        """Destroy what still runs, undo everything that the journal names, close the connection.

        Raises CleanupIncomplete when something is left.
        """
        self._statistics.stop()
        await self._addresses.stop()
        self._loaded.clear()
        if self._connection is not None:
            await self.destroy(await self._statistics.running())
            self._remember()
            self._domain_watch.end()
            self._reserve.free()
            await call("closing libvirt", _ASK, self._connection.close)
            self._connection = None
            if self._networks is not None:
                await call("removing the guests' networks", _ASK, self._networks.close)
            await call("removing the bridge", _ASK, remove_bridge)
        if self._ordered is not None:
            self._ordered.close()
        await call("clearing up", _STOP + self._seconds_for_pools(), sweep, self.journal.path, self._disks, self._lab)

    def _seconds_for_pools(self) -> float:
        """For images in a pool, which are left only where their guests could not be ended in order."""
        if not self._platform_facts.reaches:
            return 0.0
        from vmlab.hypervisor.ceph.rbd import REMOVE_SECONDS

        return REMOVE_SECONDS

    def _own_networks(self) -> GuestNetworks:
        """What guests have of networks beside the lab's bridge; made for the first guest that asks for it."""
        if self._networks is None:
            from vmlab.hypervisor.overlay_network.guest_networks import GuestNetworks

            self._networks = GuestNetworks(self._lookup)
        return self._networks

    def _remember(self) -> None:
        try:
            self._root.remember(known_capabilities())
        except OSError as error:
            # Without it the next run takes a second longer to begin.
            self._notice(f"what libvirt learned about QEMU cannot be kept: {error}")

    def _lookup(self, name: str) -> Any:
        return self._connection.lookupByName(domain_name(self._lab, name))

    def _short(self, domain: str) -> str:
        return domain.removeprefix(domain_name(self._lab, ""))
