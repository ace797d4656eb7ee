"""The parts that a run uses. Tests replace some of them; no option of the command line can."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vmlab.guests.added_guest import log_in
from vmlab.guests.held_client import lab_programs
from vmlab.guests.host_shell import BareShell, HostShell
from vmlab.guests.ssh import SshShell
from vmlab.hypervisor.bare_init import BareOrder
from vmlab.hypervisor.bare_place import bare_place, copy_image
from vmlab.hypervisor.disks.host_files import host_data, marked_folder, mounted_root, root_with_data
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.isolation.cgroups import prefix_of
from vmlab.hypervisor.isolation.host_cgroups import BareCgroups, OrderedHost, programs_of
from vmlab.hypervisor.isolation.namespace import host_pids, host_proc
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.lab_network import far_host_network
from vmlab.hypervisor.libvirt.libvirt_root import root_folder
from vmlab.hypervisor.protocols import GuestDisk, Hypervisor
from vmlab.hypervisor.settings_keeper import SettingsKeeper, Tell
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.added_guests import LogIn
from vmlab.lab.provision.guest_set import Connect
from vmlab.lab.provision.host_side import BareGuest, HostTiles
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.lab.run.recording import HostRecording
from vmlab.model.errors import RefusedError
from vmlab.model.names import FAR_HOST_ADDRESS, HOST_ADDRESS, bare_cable, guest_address
from vmlab.model.scenarios.disk_profiles import DISK_PROFILES
from vmlab.plan.estimate import emulated_disk_size
from vmlab.plan.terms import GuestPlan, Plan
from vmlab.store.outbox import Outbox
from vmlab.store.writer import RunWriter
from vmlab.system.host_size import Cores, choose_cpus, read_cores
from vmlab.system.mounts import cpu_list
from vmlab.telemetry.domains.neighbour_readings import neighbours
from vmlab.telemetry.domains.neighbours import Neighbour
from vmlab.telemetry.host.ordered_host import GroupFiles
from vmlab.telemetry.host_counters import HostCounters, host_counters
from vmlab.telemetry.source import Roots
from vmlab.telemetry.speed_trace import PERIOD
from vmlab.telemetry.standstill import StandstillWatch
from vmlab.workloads.shell import Shell


def cpu_words(cpus: Sequence[int], cores: Cores, taken: Collection[int] = ()) -> str:
    """CPUs for people, with their cores and what their cores' other hardware threads are left to."""
    used = [core for core in cores if {*core} & {*cpus}]
    idle = sorted(cpu for core in used for cpu in core if cpu not in cpus)
    words = [
        f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}",
        "1 core" if len(used) == 1 else f"{len(used)} cores",
    ]
    if any(len(core) > 1 for core in cores):
        words.append(
            "both hardware threads of each" if not idle else f"whose other threads, {cpu_list(idle)}, have no guest"
        )
    else:
        words.append("one hardware thread each")
    if shared := sorted({*cpus} & {*taken}):
        words.append(f"{cpu_list(shared)} shared with another guest on the host")
    return ", ".join(words)


def hypervisor_of(
    folder: RunFolder, plan: Plan, image: BootImage, notice: Callable[[str], None], ordered: OrderedHost | None
) -> Hypervisor:
    """libvirt's QEMU driver inside the runner, or the host's own libvirt."""
    journal, kernel = Journal(folder.journal), image.kernel
    if plan.on_hosts_libvirt:
        from vmlab.hypervisor.hosts_hypervisor import HostsHypervisor

        return HostsHypervisor(folder.disks, folder.id, notice, kernel=kernel, journal=journal)
    return EmbeddedHypervisor(
        folder.runtime,
        folder.disks,
        folder.id,
        notice,
        kernel=kernel,
        journal=journal,
        ordered=ordered,
        huge_pages=plan.huge_pages,
    )


def ordered_host(folder: RunFolder, plan: Plan) -> OrderedHost | None:
    """The host that the plan orders; None where it is the host as it is."""
    size = plan.scenario.host.size
    return None if size is None else OrderedHost(prefix_of(root_folder(folder.runtime)), size)


@contextlib.contextmanager
def host_place(folder: RunFolder, image: BootImage) -> Iterator[HostShell]:
    """The host behind the guest image's own root, for as long as the block runs. Raises HypervisorError, GuestError."""
    with mounted_root(image.disk, folder.runtime, folder.id, Journal(folder.journal)) as root:
        groups = programs_of(prefix_of(root_folder(folder.runtime)))
        shell = HostShell(root, HOST_ADDRESS, groups=groups)
        for path, program in lab_programs().items():
            shell.put(path, program)
        yield shell


@contextlib.contextmanager
def host_tiles(folder: RunFolder, host: Shell, tiles: Sequence[int]) -> Iterator[HostTiles]:
    """The host with a /data of each tile's own, on the disk of the guests' disks, for as long as the block runs.

    Raises HypervisorError, StoreError and OSError.
    """
    assert isinstance(host, HostShell)
    with contextlib.ExitStack() as closing:
        data = closing.enter_context(host_data(folder.disks, folder.id, Journal(folder.journal), tiles))
        views = {tile: root_with_data(host.root, folder.runtime / f"root-{tile}", data[tile]) for tile in tiles}
        shells = {tile: host.within(closing.enter_context(view)) for tile, view in views.items()}
        yield HostTiles(shells, tuple(data.values()))


def settings_keeper(folder: RunFolder, tell: Tell, warn: Tell) -> SettingsKeeper:
    """The settings of the host's kernel."""
    return SettingsKeeper(Journal(folder.journal), folder.disks, tell, warn)


def guest_disk(folder: RunFolder, plan: Plan) -> GuestDisk:
    """The host's own disk, or the emulated one that the plan orders."""
    profile = plan.scenario.host.disk
    if profile is None:
        return GuestDisk()
    from vmlab.hypervisor.emulated_disk.emulated_disk import EmulatedDisk

    journal, size = Journal(folder.journal), emulated_disk_size(plan.disk_bytes)
    return EmulatedDisk(DISK_PROFILES[profile], size, plan.seed, folder.disks, folder.runtime, folder.id, journal)


def counted_host() -> HostCounters:
    """The counters of the host below the runner's namespaces."""
    return host_counters(Roots(host_proc=host_proc()))


def host_neighbours() -> tuple[Neighbour, ...]:
    """The host's own guests, below the runner's namespaces."""
    return neighbours(host_proc())


def lower_weight(folder: RunFolder) -> bool:
    """Halve the weight of this lab's cgroups that no other program uses; False where none could be. Raises OSError."""
    made = [entry.what for entry in Journal(folder.journal).open_entries() if entry.kind == "partition"]
    lowered = [partition for partition in made if cgroups.lower_weight(Path(partition))]
    return bool(lowered)


def disk_places(folder: RunFolder, plan: Plan) -> tuple[Path, ...]:
    """What holds the guests' disks: the run's own folder, folders of the user's, the devices of volume groups; blocks.

    Raises OSError, and HypervisorError where a volume group cannot be asked.
    """
    found = [folder.disks]
    for place in plan.data_places:
        if place.kind == "folder":
            found.append(Path(place.name).resolve(strict=True))
        elif place.kind == "lvm":
            from vmlab.hypervisor.lvm.logical_volumes import physical_volumes

            found += physical_volumes(place.name)
    return tuple(found)


def standstills(folders: Sequence[Path], hypervisor: Hypervisor) -> StandstillWatch:
    """A watch of all that carries figures of this lab, and of the disks that hold `folders`."""
    inside, outside = host_pids() is not None, hypervisor.watch.host_pids
    # Guests of the host's own libvirt are on a bridge of the host's.
    bridge = hypervisor.network.bridge if outside() else None
    return StandstillWatch(inside=inside, folders=folders, host_proc=host_proc(), outside=outside, bridge=bridge)


traced_recording = partial(HostRecording, speed=PERIOD)


@dataclass(frozen=True, slots=True)
class RunnerParts:
    """The parts that the runner uses; tests may replace them."""

    hypervisor: Callable[[RunFolder, Plan, BootImage, Callable[[str], None], OrderedHost | None], Hypervisor] = (
        hypervisor_of
    )
    connect: Connect = SshShell.connect
    log_in: LogIn = log_in
    host_place: Callable[[RunFolder, BootImage], AbstractContextManager[Shell]] = host_place
    host_tiles: Callable[[RunFolder, Shell, Sequence[int]], AbstractContextManager[HostTiles]] = host_tiles
    open_store: Callable[[Path], RunWriter] = RunWriter
    recording: Callable[[Outbox, Hypervisor, Sequence[Path], Timing, int | None, GroupFiles | None], HostRecording] = (
        traced_recording
    )
    guest_disk: Callable[[RunFolder, Plan], GuestDisk] = guest_disk
    timing: Timing = USUAL
    settings_keeper: Callable[[RunFolder, Tell, Tell], SettingsKeeper] = settings_keeper
    host_counters: Callable[[], HostCounters] = counted_host
    neighbours: Callable[[], tuple[Neighbour, ...]] = host_neighbours


REAL = RunnerParts()
"""The parts of every run."""


class HostPlaces:
    """The places on the host that the cells of a run have, made when they are asked for and kept until `close`."""

    def __init__(self, folder: RunFolder, image: BootImage, parts: RunnerParts) -> None:
        self._folder = folder
        self._image = image
        self._parts = parts
        self._closing = contextlib.ExitStack()
        self._host: Shell | None = None
        self._network: int | None = None

    def tiles(self, tiles: Sequence[int]) -> AbstractContextManager[HostTiles]:
        """See `OpenTiles`."""
        return self._parts.host_tiles(self._folder, self._place(), tiles)

    @asynccontextmanager
    async def bare(
        self, guest: GuestPlan, position: tuple[int, int], taken: Collection[int], deadline: float
    ) -> AsyncIterator[BareGuest]:
        """See `OpenBare`. Raises RefusedError where there are not so many CPUs."""
        host, folder = self._place(), self._folder
        assert isinstance(host, HostShell)
        journal, address = Journal(folder.journal), guest_address(*position)
        cgroups = BareCgroups(prefix_of(root_folder(folder.runtime)), journal)
        cgroups.hold()
        cores = read_cores(allowed=cgroups.cpus())
        resources = guest.resources
        try:
            cpus = choose_cpus(cores, resources.vcpus, smt=resources.smt, taken=taken)
        except ValueError as lack:
            raise RefusedError(f"guest {guest.guest} has on: host, and {lack}") from lack
        with (
            marked_folder(folder.disks / f"bare-{guest.key}", folder.id, journal) as files,
            cgroups.made(guest.key, cpus, resources.memory_bytes) as groups,
        ):
            await copy_image(host.root, files)
            order = BareOrder(str(host.root), str(folder.runtime / f"bare-{guest.key}"), str(files), guest.key)
            async with bare_place(order, bare_cable(*position), address, groups) as place:
                shell = BareShell(place.pid, address, place.groups)
                await shell.prepare(guest.roles, deadline)
                yield BareGuest(shell, files, tuple(cpus), cpu_words(cpus, cores, taken))

    def far(self, host: Shell) -> Shell:
        """The host once more, with a card of its own on the lab's bridge, for what runs from host to host.

        Raises HypervisorUnavailable.
        """
        assert isinstance(host, HostShell)
        if self._network is None:
            self._network = self._closing.enter_context(far_host_network())
        return host.beyond(self._network, FAR_HOST_ADDRESS)

    def _place(self) -> Shell:
        if self._host is None:
            self._host = self._closing.enter_context(self._parts.host_place(self._folder, self._image))
        return self._host

    async def close(self) -> None:
        """Take all of them away."""
        self._closing.close()
