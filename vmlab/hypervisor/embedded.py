"""libvirt's QEMU driver inside the runner: no daemon, nothing to configure, gone with the runner's namespace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu
from lxml import etree

from vmlab.hypervisor import cache_proof, cgroups, frozen
from vmlab.hypervisor.calls import call
from vmlab.hypervisor.contract import BootImage, DomainSpec
from vmlab.hypervisor.disks import BackingFormat, make_overlay, require_direct
from vmlab.hypervisor.domain_xml import DomainFiles, Platform, domain_name, domain_xml, nic_xml
from vmlab.hypervisor.events import start_event_loop
from vmlab.hypervisor.journal import Entry, Journal
from vmlab.hypervisor.kvm_probe import EMULATOR, usable_accelerator
from vmlab.hypervisor.libvirt_root import LibvirtRoot, on_one_cpu
from vmlab.hypervisor.namespace import require_isolation
from vmlab.hypervisor.network import make_bridge, remove_bridge
from vmlab.hypervisor.qmp import qmp
from vmlab.hypervisor.ram_state import read_state, write_state
from vmlab.hypervisor.sweep import mark_folder, sweep
from vmlab.model.errors import HypervisorError, HypervisorUnavailable, SnapshotError
from vmlab.model.places import cache_folder
from vmlab.model.run import Accelerator, CacheProof

_OPEN = 60.0
_START = 120.0
_STATE = 180.0
_STOP = 40.0
_ASK = 10.0


_WITHOUT_QEMU = (
    libvirt.VIR_DOMAIN_STATS_STATE
    | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
)
_FROM_QEMU = libvirt.VIR_DOMAIN_STATS_BLOCK | libvirt.VIR_DOMAIN_STATS_BALLOON


class EmbeddedHypervisor:
    """`contract.Hypervisor` by ``qemu:///embed``; to be used inside `namespace.run_isolated` alone.

    `runtime` is a short folder for sockets, `disks` takes overlays and console logs, `lab` is the run's id.
    `kernel` is what KVM is probed with when `accelerator` is asked before anything was created. `journal` is
    the run's, by default ``journal.jsonl`` beside `disks`.
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
    ) -> None:
        self.journal = journal or Journal(disks.parent / "journal.jsonl")
        self._runtime = runtime
        self._root = LibvirtRoot(runtime / "v")
        self._disks = disks
        self._lab = lab
        self._notice = on_notice or (lambda _words: None)
        self._kernel = kernel
        self._images: dict[str, BootImage] = {}
        self._specs: dict[str, DomainSpec] = {}
        self._files: dict[str, DomainFiles] = {}
        self._connection: Any = None
        self._asking: asyncio.Future[dict[str, dict[str, int]]] | None = None
        self._accelerator: Accelerator | None = None
        self._platform: Platform | None = None

    async def open(self) -> None:
        """Connect and make the lab's bridge. Raises HypervisorUnavailable, also outside the lab's namespaces."""
        require_isolation()
        try:
            await call("opening libvirt", _OPEN, self._open)
        except (HypervisorError, OSError) as error:
            raise HypervisorUnavailable(str(error), remedy="vmlab doctor") from error
        if "cpu" not in cgroups.available_controllers(cgroups.hierarchies()):
            self._notice("this host has no cpu cgroup controller: CPU shares cannot be set")

    def _open(self) -> None:
        mounts = cgroups.hierarchies()
        self.journal.add(Entry("folder", str(self._root.folder)))
        mark_folder(self._root.folder)
        self._hold_cgroups(mounts)
        self._root.prepare(cgroups.available_controllers(mounts), _known_capabilities())
        start_event_loop()
        with on_one_cpu():
            self._connection = libvirt.open(self._root.uri)
        self._load_schema()
        make_bridge()

    def _load_schema(self) -> None:
        """Have libxml2 set up its types of values: where several starts side by side are the first to, some fail."""
        with contextlib.suppress(libvirt.libvirtError):
            self._connection.createXML("<domain/>", libvirt.VIR_DOMAIN_START_VALIDATE)

    def _hold_cgroups(self, mounts: list[cgroups.Mount]) -> None:
        prefix = cgroups.prefix_of(self._root.folder)
        partitions = cgroups.partitions(mounts)
        for partition in partitions:
            if not cgroups.is_shared(partition):
                self.journal.add(Entry("partition", str(partition)))
        self.journal.add(Entry("cgroups", prefix))
        for partition in partitions:
            cgroups.hold(partition, prefix)

    async def accelerator(self) -> Accelerator:
        """``kvm`` where the guests' own kernel boots under it, else ``tcg``. Asked once."""
        if self._accelerator is None:
            if self._kernel is None:
                raise HypervisorError("no kernel to probe KVM with: give one, or create guests first")
            found = await call("probing KVM", _OPEN, usable_accelerator, self._kernel, cache_folder())
            if found == "tcg":
                self._notice("KVM does not run a kernel here: guests are emulated (TCG)")
            self._accelerator = found
        return self._accelerator

    async def facts(self) -> dict[str, Any]:
        """libvirt's and QEMU's versions, accelerator, machine type, CPU model."""
        platform = await self._offer()
        qemu, own = await call("libvirt version", _ASK, self._versions)
        return {
            "hypervisor": "embedded",
            "libvirt": _version(own),
            "qemu": _version(qemu),
            "accelerator": platform.accelerator,
            "machine_type": platform.machine_type,
            "cpu_model": "host-passthrough" if platform.accelerator == "kvm" else "maximum",
            "host_cpu_flags": frozen.host_cpu_flags() if platform.accelerator == "kvm" else None,
        }

    def _versions(self) -> tuple[int, int]:
        return self._connection.getVersion(), self._connection.getLibVersion()

    async def _offer(self) -> Platform:
        if self._platform is None:
            accelerator = await self.accelerator()
            machine = await call("domain capabilities", _OPEN, self._machine_type, accelerator)
            self._platform = Platform(accelerator, EMULATOR, machine)
        return self._platform

    def _machine_type(self, accelerator: Accelerator) -> str:
        """The versioned name behind QEMU's alias ``q35``, which is the newest one it has."""
        kind = "kvm" if accelerator == "kvm" else "qemu"
        text: str = self._connection.getDomainCapabilities(EMULATOR, "x86_64", "q35", kind)
        return str(etree.fromstring(text).findtext("machine"))

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        """Make overlays and start all domains, side by side. On an error, or a cancellation, none stays."""
        platform = await self._ready_for(image, specs)
        await self._all_or_none(specs, [self._start(image, spec, platform, None) for spec in specs])

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, Path]) -> None:
        """Start all domains from saved states, side by side. On an error, or a cancellation, none stays."""
        platform = await self._ready_for(image, specs)
        facts = await self.facts()
        for spec in specs:
            folder, expected = saved[spec.name], frozen.layout(spec, image, facts)
            await call(f"{spec.name}: looking at its snapshot", _ASK, frozen.require_fitting, folder, expected)
        await self._all_or_none(specs, [self._thaw(image, spec, platform, saved[spec.name]) for spec in specs])
        # Together, once all are loaded: those that ran would take the processors from those that load.
        await self._all_or_none(specs, [self._resume(spec) for spec in specs])

    async def _ready_for(self, image: BootImage, specs: list[DomainSpec]) -> Platform:
        self._kernel = self._kernel or image.kernel
        self._disks.mkdir(parents=True, exist_ok=True)
        for mode in {spec.cache for spec in specs}:
            require_direct(self._disks, mode)
            require_direct(image.disk.parent, mode)
        return await self._offer()

    async def _all_or_none(self, specs: list[DomainSpec], starts: list[Coroutine[Any, Any, None]]) -> None:
        starting = asyncio.gather(*starts, return_exceptions=True)
        try:
            results = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # A start that is under way in libvirt cannot be called off; a domain would appear after the clean-up.
            await starting
            await self.destroy([spec.name for spec in specs])
            raise
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            await self.destroy([spec.name for spec in specs])
            raise next((one for one in failures if isinstance(one, SnapshotError)), failures[0])

    async def _start(self, image: BootImage, spec: DomainSpec, platform: Platform, disk: Path | None) -> None:
        """Start one domain; on a saved `disk` it stays paused and waits for its state."""
        files = self._files_of(spec.name, disk)
        self._images[spec.name], self._specs[spec.name], self._files[spec.name] = image, spec, files
        self.journal.add(Entry("file", str(files.overlay)))
        below: tuple[Path, BackingFormat] = (image.disk, "raw") if disk is None else (disk, "qcow2")
        await call(
            f"{spec.name}: making its disk", _START, make_overlay, below[0], files.overlay, spec.disk_bytes, below[1]
        )
        text = domain_xml(spec, self._lab, image, files, platform)
        flags = libvirt.VIR_DOMAIN_START_VALIDATE | (0 if disk is None else libvirt.VIR_DOMAIN_START_PAUSED)
        await call(f"{spec.name}: starting", _START, self._connection.createXML, text, flags)

    async def _thaw(self, image: BootImage, spec: DomainSpec, platform: Platform, folder: Path) -> None:
        await self._start(image, spec, platform, folder / frozen.DISK)
        domain = await call(f"{spec.name}: looking it up", _ASK, self._lookup, spec.name)
        try:
            await read_state(domain, spec.name, folder / frozen.RAM, _STATE)
        except HypervisorError as error:
            why = self._root.last_words_of(domain.name()) or str(error)
            raise SnapshotError(f"{spec.name}: snapshot {folder.name} does not load: {why}") from error
        if spec.network:
            live = libvirt.VIR_DOMAIN_AFFECT_LIVE
            await call(f"{spec.name}: plugging in its network", _ASK, domain.attachDeviceFlags, nic_xml(spec), live)

    async def _resume(self, spec: DomainSpec) -> None:
        await call(f"{spec.name}: resuming", _ASK, lambda: self._lookup(spec.name).resume())

    def _files_of(self, name: str, disk: Path | None) -> DomainFiles:
        return DomainFiles(
            overlay=self._disks / f"{name}.qcow2",
            console=self._disks / f"{name}.console",
            agent=self._root.agent_socket(name),
            frozen=disk,
        )

    async def save(self, name: str, folder: Path) -> None:
        """Freeze a guest into `folder`; it is gone afterwards, whatever comes of it."""
        try:
            if self._specs[name].network:
                raise HypervisorError(f"{name}: a guest with a network cannot be saved")
            described = frozen.layout(self._specs[name], self._images[name], await self.facts())
            domain = await call(f"{name}: looking it up", _ASK, self._lookup, name)
            xml = await call(f"{name}: its description", _ASK, domain.XMLDesc, 0)
            await call(f"{name}: stopping its processors", _ASK, domain.suspend)
            await write_state(domain, name, folder / frozen.RAM, _STATE)
            await call(f"{name}: stopping", _STOP, self._stop, name)
            await call(f"{name}: keeping its disk", _STATE, frozen.keep_disk, self._files[name].overlay, folder)
            frozen.write_machine(folder, described, _version(self._connection.getLibVersion()), xml)
        except OSError as error:
            raise HypervisorError(f"{name}: cannot be saved: {error}") from error
        finally:
            await asyncio.shield(self.destroy([name]))

    async def prove_cache(self, specs: list[DomainSpec]) -> list[CacheProof]:
        """Two proofs a guest, overlay and image, and between them a restored one's saved disk; see `cache_proof`."""
        proofs = await asyncio.gather(
            *(call(f"{spec.name}: proving its cache mode", _ASK, self._prove, spec) for spec in specs)
        )
        return [proof for pair in proofs for proof in pair]

    def _prove(self, spec: DomainSpec) -> list[CacheProof]:
        domain = self._lookup(spec.name)
        try:
            pid = self._root.pid_of(domain.name())
            files = self._files[spec.name]
            chain = [file for file in (files.overlay, files.frozen, self._images[spec.name].disk) if file is not None]
            return cache_proof.prove(spec.guest, spec.cache, chain, pid, lambda name: qmp(domain, name))
        except (OSError, KeyError) as error:
            raise HypervisorError(f"{spec.name}: cannot look into its QEMU: {error}") from error

    async def agent(
        self, name: str, command: str, arguments: dict[str, Any] | None = None, *, deadline: float = 10.0
    ) -> Any:
        """One command to the guest agent; its ``return`` value."""
        request = {"execute": command} if arguments is None else {"execute": command, "arguments": arguments}

        def ask() -> Any:
            domain = self._lookup(name)
            return libvirt_qemu.qemuAgentCommand(domain, json.dumps(request), math.ceil(deadline), 0)

        answer = await call(f"{name}: {command}", deadline, ask)
        return json.loads(answer)["return"]

    async def cpu_seconds(self, names: list[str]) -> dict[str, float]:
        """CPU time by guest, in seconds. Raises HypervisorError where one does not run."""
        stats = await call("CPU times", _ASK, self._bulk, libvirt.VIR_DOMAIN_STATS_CPU_TOTAL)
        try:
            return {name: stats[name]["cpu.time"] / 1e9 for name in names}
        except KeyError as error:
            raise HypervisorError(f"no CPU time of {', '.join(set(names) - stats.keys()) or error}") from error

    async def domain_stats(self) -> dict[str, dict[str, int]]:
        """libvirt's bulk statistics, its numbers alone, by the guest's name.

        What QEMU itself must be asked for, disks and balloon, takes seconds where many guests are busy: it is asked
        in the background and is in the answer when it has come, each reading once.
        """
        quick = await call("domain statistics", _ASK, self._bulk, _WITHOUT_QEMU)
        slow = self._slow_stats()
        return {name: {**slow.get(name, {}), **numbers} for name, numbers in quick.items()}

    def _slow_stats(self) -> dict[str, dict[str, int]]:
        """What the last question to all QEMUs brought, once; starts the next one."""
        found: dict[str, dict[str, int]] = {}
        if self._asking is not None:
            if not self._asking.done():
                return found
            # A question that failed is asked again; the guests' own figures are told without it.
            if not self._asking.cancelled() and self._asking.exception() is None:
                found = self._asking.result()
        self._asking = asyncio.ensure_future(call("disk statistics", _ASK, self._bulk, _FROM_QEMU))
        return found

    def _bulk(self, which: int) -> dict[str, dict[str, int]]:
        flags = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        found = self._connection.getAllDomainStats(which, flags)
        return {self._short(domain.name()): _numbers(stats) for domain, stats in found}

    async def destroy(self, names: list[str]) -> None:
        """Stop domains at once and delete their overlays; those that are gone already are no error."""
        results = await asyncio.gather(
            *(call(f"{name}: stopping", _STOP, self._destroy, name) for name in names), return_exceptions=True
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

    def _destroy(self, name: str) -> None:
        self._stop(name)
        self._root.forget(domain_name(self._lab, name))
        overlay = self._files_of(name, None).overlay
        overlay.unlink(missing_ok=True)
        self.journal.strike(Entry("file", str(overlay)))

    async def close(self) -> None:
        """Destroy what still runs, take back everything that the journal names, close the connection.

        Raises CleanupIncomplete when something stays.
        """
        if self._asking is not None:
            self._asking.cancel()
        if self._connection is not None:
            running = await call("list of domains", _ASK, self._bulk, libvirt.VIR_DOMAIN_STATS_STATE)
            await self.destroy(list(running))
            self._root.remember(_known_capabilities())
            await call("closing libvirt", _ASK, self._connection.close)
            self._connection = None
            await call("removing the bridge", _ASK, remove_bridge)
        await call("clearing up", _STOP, sweep, self.journal.path)
        with contextlib.suppress(OSError):
            self._runtime.rmdir()

    def _lookup(self, name: str) -> Any:
        return self._connection.lookupByName(domain_name(self._lab, name))

    def _short(self, domain: str) -> str:
        return domain.removeprefix(domain_name(self._lab, ""))


def _known_capabilities() -> Path:
    return cache_folder() / "libvirt"


def _numbers(stats: dict[str, Any]) -> dict[str, int]:
    return {key: value for key, value in stats.items() if isinstance(value, int)}


def _version(number: int) -> str:
    """libvirt's packed number, such as 7002022, as ``7.2.22``."""
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
