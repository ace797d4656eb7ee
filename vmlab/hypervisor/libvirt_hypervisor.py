"""Guests under libvirt: what is the same whether libvirt is inside the runner (`embedded`) or the host's own
(`hosts_hypervisor`).
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu

from vmlab.hypervisor import frozen_guest
from vmlab.hypervisor.disks.data_disks import DataDisks
from vmlab.hypervisor.disks.overlays import BackingFormat, make_overlay, require_direct
from vmlab.hypervisor.disks.running_disks import RunningDisks
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.frozen_guest import MemoryReserve, SharedState, read_state, released, write_state
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.libvirt.calls import ASK, MERGE_SECONDS, STOP, call, set_mergeable
from vmlab.hypervisor.libvirt.domain_watch import DomainWatch
from vmlab.hypervisor.libvirt.domain_xml import DomainFiles, OnHost, domain_name, domain_xml, nic_xml
from vmlab.hypervisor.libvirt.libvirt_root import Places
from vmlab.hypervisor.libvirt.running_guest import DomainStatistics, LeverProving, StartedGuest, live_settings
from vmlab.hypervisor.platform_facts import PlatformFacts, version_words
from vmlab.hypervisor.protocols import SavedGuest
from vmlab.hypervisor.settings_keeper import HugePages
from vmlab.model.concurrency import run_all, shielded
from vmlab.model.errors import DeadlineExceeded, GuestLost, HypervisorError, SnapshotError
from vmlab.model.names import DISK, RAM
from vmlab.model.results import LeverProof
from vmlab.model.run import Accelerator
from vmlab.system.kvm_device import START_SECONDS
from vmlab.system.removal import remove_file

_DISK = 120.0
_STATE = 180.0
_RESERVE = 60.0


class LibvirtHypervisor:
    """What of `protocols.Hypervisor` both have in common; they add how libvirt is opened, and the lab's network.

    `places` is where libvirt has what belongs to a domain, `disks` takes overlays and console logs, `lab` is the run's
    id. `watch` hears of the ends of domains. `kernel` is what KVM is probed with when `accelerator` is asked before
    anything was created. `journal` is the run's, by default ``journal.jsonl`` beside `disks`. `kind` is the scenario's
    word for it.
    """

    _start_flags = libvirt.VIR_DOMAIN_START_VALIDATE
    _partition: str | None = None
    """Where libvirt puts the guests' cgroups, in place of its own choice."""
    _ordered_cpus: int | None = None
    """How many CPUs the limited host has, where there is one."""
    _on_host: OnHost | None = None
    """What guests have besides in the host's own libvirt."""
    _seconds_to_clear = STOP
    """How long clearing up may take."""

    def __init__(
        self,
        places: Places,
        disks: Path,
        lab: str,
        on_notice: Callable[[str], None] | None,
        watch: DomainWatch,
        *,
        kind: str,
        kernel: Path | None,
        journal: Journal | None,
    ) -> None:
        self.journal = journal or Journal(disks.parent / "journal.jsonl")
        self._places = places
        self._disks = disks
        self._lab = lab
        self._notice = on_notice or (lambda _words: None)
        self._platform_facts = PlatformFacts(lambda: self._connection, self._notice, kernel, kind)
        self._data_disks = DataDisks(disks, lab, self.journal)
        self._guests: dict[str, StartedGuest] = {}
        self._weights: dict[str, int | None] = {}
        self._reserve = MemoryReserve()
        self._huge_pages = HugePages(self.journal)
        self._loaded: dict[str, int] = {}
        self._connection: Any = None
        self.watch = watch
        self.statistics = DomainStatistics(self._all_stats, self._short)
        self.guest_disks = RunningDisks(places, self._data_disks, self._lookup, self._guests)

    async def accelerator(self) -> Accelerator:
        """``kvm`` where the guests' own kernel boots under it, else ``tcg``. Asked once."""
        return await self._platform_facts.accelerator()

    async def facts(self) -> dict[str, Any]:
        """libvirt's and QEMU's versions, accelerator, machine type, CPU model. Asked once, as they do not change."""
        return await self._platform_facts.facts()

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        """Make overlays and start all domains, side by side. On an error, or a cancellation, none stays."""
        self._reserve.free()
        await self._ready_for(image, specs)
        await self._serve({spec.mac: spec.address for spec in specs if spec.address is not None})
        await self._all_or_none(specs, [self._boot(spec.image or image, spec) for spec in specs])

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, SavedGuest]) -> None:
        """Start all domains from saved states, side by side. On an error, or a cancellation, none stays."""
        await self._ready_for(image, specs)
        facts = await self.facts()
        for spec in specs:
            folder, expected = saved[spec.name].folder, frozen_guest.layout(spec, image, facts)
            await call(f"{spec.name}: looking at its snapshot", ASK, frozen_guest.require_fitting, folder, expected)
        folders = {saved[spec.name].folder: saved[spec.name].files[RAM] for spec in specs}
        states = {folder: SharedState(folder / RAM, expected, _STATE) for folder, expected in folders.items()}
        thawing = [
            self._thaw(spec.image or image, spec, states[saved[spec.name].folder], saved[spec.name].folder)
            for spec in specs
        ]
        try:
            await self._all_or_none(specs, thawing)
        finally:
            # Guests that run are to find the memory that they would find without a reserve.
            self._reserve.free()
            await shielded(released(states.values()))
        # All together, when all are loaded: guests that run would take CPU time from those that load.
        await self._all_or_none(specs, [self._resume(spec) for spec in specs])

    async def _ready_for(self, image: BootImage, specs: list[DomainSpec]) -> None:
        self._platform_facts.kernel = self._platform_facts.kernel or image.kernel
        self._disks.mkdir(exist_ok=True)
        for mode in {spec.resources.cache for spec in specs}:
            for folder in (self._disks, *{(spec.image or image).disk.parent for spec in specs}):
                require_direct(folder, mode)
        await self._make_networks(specs)
        shares = {spec.name: spec.resources.cpu_shares for spec in specs}
        self._weights |= cgroups.weights(shares, cgroups.hierarchies())
        await self._platform_facts.platform()
        self._platform_facts.say_emulated()
        await call("reserving huge pages", _RESERVE, self._huge_pages.reserve, specs)

    async def _all_or_none(self, specs: list[DomainSpec], starts: list[Coroutine[Any, Any, None]]) -> None:
        try:
            await run_all(starts)
        except BaseException:
            await shielded(self.destroy([spec.name for spec in specs]))
            raise

    async def _boot(self, image: BootImage, spec: DomainSpec) -> None:
        domain = await self._start(image, spec, None)
        pid = self.watch.pid_of(spec.name, domain)
        self.watch.watch(spec.name, domain, pid)
        await self._set_emulator_shares(spec, pid)
        await self._limit(spec)

    async def _set_emulator_shares(self, spec: DomainSpec, pid: int) -> None:
        """Give QEMU's other threads the weight that the guest asks for, for which libvirt has no key."""
        shares, groups = spec.resources.emulator_shares, self._places.proc / str(pid) / "cgroup"
        if shares is not None:
            await call(
                f"{spec.name}: setting its emulator shares",
                ASK,
                lambda: cgroups.set_emulator_shares(shares, groups.read_bytes(), cgroups.hierarchies()),
            )

    async def _serve(self, addresses: Mapping[str, str]) -> None:
        """Give guests these addresses, by MAC address, when they ask by DHCP."""
        raise NotImplementedError

    async def _make_networks(self, specs: list[DomainSpec]) -> None:
        """What these guests have of networks beside the lab's bridge."""

    async def _limit(self, spec: DomainSpec) -> None:
        """Limit the bandwidth of a guest that runs."""

    def _about_to_start(self, name: str) -> None:
        """Enter in the journal what else outlives a guest that is about to start; blocks."""

    async def _started(self, spec: DomainSpec, domain: Any) -> None:
        """Look at a domain that was started just now. Raises HypervisorError, GuestLost."""

    def _all_stats(self, which: int, flags: int) -> list[tuple[Any, dict[str, Any]]]:
        """libvirt's bulk statistics of the lab's domains; blocks."""
        raise NotImplementedError

    async def _start(self, image: BootImage, spec: DomainSpec, disk: Path | None) -> Any:
        """Start one domain, which is returned; on a saved `disk` it stays paused and waits for its state."""
        # A start in libvirt cannot be cancelled; the domain would appear after the clean-up.
        return await shielded(self._made(image, spec, disk))

    async def _made(self, image: BootImage, spec: DomainSpec, disk: Path | None) -> Any:
        files = self._files_of(spec.name, disk)
        platform = await self._platform_facts.platform_for(spec)
        weighted = replace(spec, resources=spec.resources.with_cpu_shares(self._weights[spec.name]))
        xml = domain_xml(weighted, self._lab, image, files, platform, self._partition, self._on_host)
        self._guests[spec.name] = StartedGuest(image, spec, files, xml)
        for file in (files.overlay, files.console):
            self.journal.add(JournalEntry("file", str(file)))
        self._about_to_start(spec.name)
        below: tuple[Path, BackingFormat] = (image.disk, "raw") if disk is None else (disk, "qcow2")
        size = spec.resources.disk_bytes
        await call(f"{spec.name}: making its disk", _DISK, make_overlay, below[0], files.overlay, size, below[1])
        flags = self._start_flags | (0 if disk is None else libvirt.VIR_DOMAIN_START_PAUSED)
        domain = await call(f"{spec.name}: starting", START_SECONDS, self._connection.createXML, xml, flags)
        await self._started(spec, domain)
        return domain

    async def _thaw(self, image: BootImage, spec: DomainSpec, state: SharedState, folder: Path) -> None:
        pid: int | None = None
        try:
            domain = await self._start(image, spec, folder / DISK)
            pid = self.watch.pid_of(spec.name, domain)
            self._loaded[spec.name] = state.size
            await read_state(domain, spec.name, state, _STATE, self._reserve.free)
        except SnapshotError:
            raise
        except (HypervisorError, DeadlineExceeded) as error:
            if pid is not None and (ending := await self.watch.kill_of(pid)) is not None:
                raise GuestLost(spec.name, f"its QEMU died while its state was loaded: {ending}") from error
            why = self._places.last_words_of(domain_name(self._lab, spec.name)) or str(error)
            if frozen_guest.blames_data(why):
                text = f"{spec.name}: snapshot {folder.name} does not load: {why}"
                raise SnapshotError(text, snapshot=folder.name) from error
            # Nothing says that the snapshot is at fault, so it is kept.
            raise HypervisorError(f"{spec.name}: cannot be restored from {folder.name}: {why}") from error
        self.watch.watch(spec.name, domain, pid)
        await self._set_emulator_shares(spec, pid)
        if spec.network:
            card, live = nic_xml(spec, self._on_host), libvirt.VIR_DOMAIN_AFFECT_LIVE
            await call(f"{spec.name}: plugging in its network", ASK, domain.attachDeviceFlags, card, live)
            await self._limit(spec)

    async def _resume(self, spec: DomainSpec) -> None:
        await call(f"{spec.name}: resuming", ASK, lambda: self._lookup(spec.name).resume())

    def _files_of(self, name: str, disk: Path | None) -> DomainFiles:
        return DomainFiles(
            overlay=self._disks / f"{name}.qcow2",
            console=self._console_of(name),
            agent=self._places.agent_socket(name),
            helper=self._places.helper_socket(name),
            frozen=disk,
        )

    def _console_of(self, name: str) -> Path:
        return self._disks / f"{name}.console"

    async def save(self, name: str, folder: Path) -> None:
        """Save a guest into `folder`; afterwards it is gone, also on an error."""
        try:
            guest = self._guests[name]
            if guest.spec.network:
                raise HypervisorError(f"{name}: a guest with a network cannot be saved")
            described = frozen_guest.layout(guest.spec, guest.image, await self.facts())
            domain = await call(f"{name}: looking it up", ASK, self._lookup, name)
            xml = await call(f"{name}: its description", ASK, domain.XMLDesc, 0)
            await call(f"{name}: stopping its processors", ASK, domain.suspend)
            await write_state(domain, name, folder / RAM, _STATE)
            self.watch.leave(name)
            await call(f"{name}: stopping", STOP, self._stop, name)
            await call(f"{name}: keeping its disk", _STATE, frozen_guest.keep_disk, guest.files.overlay, folder)
            frozen_guest.write_machine(folder, described, version_words(self._connection.getLibVersion()), xml)
        except OSError as error:
            raise HypervisorError(f"{name}: cannot be saved: {error}") from error
        finally:
            await shielded(self.destroy([name]))

    async def plug_data_disks(self, specs: list[DomainSpec]) -> None:
        """Plug in the data disk of each guest that has one; its kernel sees it some moments later."""
        having = [spec for spec in specs if spec.resources.data_bytes is not None]
        await run_all(self._data_disks.plug(spec, self._lookup) for spec in having)

    async def prove_levers(
        self, specs: Sequence[DomainSpec], keys: Collection[str], inside: Mapping[str, Mapping[str, str]]
    ) -> list[LeverProof]:
        """See `LeverProving`."""
        return await LeverProving(self._places, self._lookup, self._ordered_cpus).prove(specs, keys, inside)

    async def live_settings(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """See `protocols.Hypervisor.live_settings`."""
        return await live_settings(self._lookup, names)

    async def make_mergeable(self, names: list[str], mergeable: bool) -> dict[str, float]:
        """Have QEMU tell the kernel so of all their memory; see `set_mergeable`."""

        def ask(name: str) -> float:
            return set_mergeable(self._lookup(name), mergeable)

        return {name: await call(f"{name}: unmerging its memory", MERGE_SECONDS, ask, name) for name in names}

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

    def helper_socket(self, name: str) -> Path | None:
        """Where QEMU listens for the guest's helper."""
        return self._places.helper_socket(name)

    async def destroy(self, names: list[str]) -> None:
        """Stop domains at once and delete their overlays; guests that have ended already are ignored."""
        for name in names:
            self.watch.leave(name)
        deadline = STOP + self._data_disks.seconds_to_release(names)
        loaded = {name: self._loaded.pop(name, 0) for name in names}
        if self._loaded:
            # Others go on, and their host is to have the memory.
            loaded = dict.fromkeys(names, 0)
        results = await asyncio.gather(
            *(call(f"{name}: stopping", deadline, self._destroy, name, loaded[name]) for name in names),
            return_exceptions=True,
        )
        for line in self._huge_pages.lines():
            self._notice(line)
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
        self._huge_pages.release(name)
        self._reserve.take(reserved)
        self._forget(name)
        files = self._files_of(name, None)
        for file in (files.overlay, files.console):
            self._remove(file)
        self._data_disks.release(name)

    def _remove(self, file: Path) -> None:
        remove_file(file)
        self.journal.strike(JournalEntry("file", str(file)))

    def _forget(self, name: str) -> None:
        """Remove what else there is of a guest that has ended; blocks."""
        self._places.forget(domain_name(self._lab, name))

    async def close(self) -> None:
        """Destroy what still runs, undo everything that the journal names, close the connection.

        Raises CleanupIncomplete when something is left.
        """
        self.statistics.stop()
        await self._stop_serving()
        self._loaded.clear()
        if self._connection is not None:
            await self.destroy(await self.statistics.running())
            self.watch.end()
            self._reserve.free()
            await self._disconnect()
            self._connection = None
        await self._clear_up()

    async def _stop_serving(self) -> None:
        """Give no addresses any more."""

    async def _disconnect(self) -> None:
        """Close the connection, and take the lab's network away."""
        await call("closing libvirt", ASK, self._connection.close)

    async def _clear_up(self) -> None:
        deadline = self._seconds_to_clear + self._data_disks.longest_release
        await call("clearing up", deadline, sweep, self.journal.path, self._disks, self._lab)

    def _lookup(self, name: str) -> Any:
        return self._connection.lookupByName(domain_name(self._lab, name))

    def _short(self, domain: str) -> str:
        return domain.removeprefix(domain_name(self._lab, ""))
