"""What the engine asks of a hypervisor. One implementation is real (`embedded`); a fake lives in tests alone.

The disk below the guests' files is the host's own, or an emulated one that the scenario orders.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, NoReturn, Protocol

from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.integrity.digests import FileDigests
from vmlab.model.ordered import EMULATED_DISK
from vmlab.model.results import CacheProof, CpuUse, Drained, LeverProof, NetworkCounts
from vmlab.model.run import Accelerator, CacheMode
from vmlab.telemetry.guest_readings import GuestAnswer

CAUSE_SECONDS = 1.0
"""From the first report of a guest's death until its cause is given: other reports may tell more."""


DiskLatency = dict[str, dict[str, list[int]]]
"""Requests in each bin by disk (``root``, ``data``) and operation."""


@dataclass(frozen=True, slots=True)
class DiskRequests:
    """Requests of a guest's disk that its QEMU has `answered` since it started, and that it has `taken` and not
    answered; None where it does not say.
    """

    answered: int
    taken: int | None = None
    limited: int = 0
    """Those that a limit counts: reads and writes that have ended, several that QEMU has merged as one."""
    limited_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LabNetwork:
    """The network that guests are on: the name of its bridge, and the range of the lab's addresses on it."""

    bridge: str
    addresses: IPv4Network


class SavedGuest(Protocol):
    """What `save` left in `folder`, and by name the digests that its files were found to have then."""

    @property
    def folder(self) -> Path: ...

    @property
    def files(self) -> Mapping[str, FileDigests]: ...


class GuestDisks(Protocol):
    """The disks of guests that run; see `Hypervisor` for deadlines and errors."""

    async def prove_cache(self, specs: Sequence[DomainSpec]) -> list[CacheProof]:
        """Read O_DIRECT of every disk file (overlay, all below it, data disk) from /proc, and QMP's cache flags.

        To be called when the guests' own drivers run, as when the agent answers: until then the firmware uses the disk,
        and firmware that does not negotiate flushes turns the device's write cache off.
        """

    async def drain_disks(self, specs: Sequence[DomainSpec], deadline: float) -> Drained:
        """Have the host write the dirty pages of these guests' disks until few are left, while the guests run.

        Raises DrainTooLong when that takes longer than `deadline` seconds. A cancellation does no harm.
        """

    async def switch_cache(self, specs: Sequence[DomainSpec], mode: CacheMode) -> dict[str, float]:
        """Switch all disks of these guests to `mode`, one of `model.run.SWITCHABLE`.

        To be called right after `drain_disks`, and not to be cancelled. Returns for each guest the seconds for which it
        may have stood still. Raises RefusedError where a disk's file system has no O_DIRECT, and SwitchBrokenOff when a
        disk cannot be switched; the others are put back then, and the message says whether that went well.
        """

    async def begin_latency(self, name: str) -> None:
        """Have the QEMU of a guest count from now on how long requests of its disks take."""

    async def disk_latency(self, name: str) -> DiskLatency:
        """What was counted since `begin_latency`, in the bins of `telemetry.latency_bins.BINS`."""

    async def disk_requests(self, name: str) -> dict[str, DiskRequests]:
        """What the QEMU of a guest has answered and taken, by disk (``root``, ``data``)."""


class GuestStatistics(Protocol):
    """What libvirt counts of guests that run; see `Hypervisor` for deadlines and errors."""

    async def cpu_seconds(self, names: Collection[str]) -> dict[str, float]:
        """CPU time that each of these guests has used, in seconds. HypervisorError where one does not run."""

    async def cpu_use(self, names: Collection[str]) -> dict[str, CpuUse]:
        """What the CPUs did for each of these guests since it started; none for those that do not run."""

    async def domain_stats(self, *, whole: bool = False) -> GuestAnswer[dict[str, dict[str, int]]]:
        """libvirt's bulk statistics, by domain name, without waiting for busy domains; with `whole`, of all of them."""


class GuestWatch(Protocol):
    """The QEMUs of guests; for the event loop's thread."""

    async def until_lost(self, names: Collection[str]) -> NoReturn:
        """Raise GuestLost as soon as one of these guests has died, or its disk has made QEMU stop it; else wait.

        It has no deadline and never returns: cancel it. A guest that does not run yet is waited for; one that was ended
        by `destroy`, `save` or `close` is not lost. `CAUSE_SECONDS` after the death, and at once where a guest was lost
        before this was asked. Until a guest of that name starts again, or is destroyed, it stays lost.
        """

    async def standstill(self, names: Collection[str]) -> dict[str, float]:
        """Seconds for which each guest's QEMU was stopped (SIGSTOP) since it started, a stop that still lasts included.

        The difference between the values before and after a span is the time that the guest missed in it. A guest that
        does not run has 0.
        """

    def tuned(self, names: Collection[str]) -> dict[str, list[str]]:
        """What libvirt was asked to change of each guest since it started, such as a limit of a disk, in words."""

    def pids(self, names: Collection[str]) -> dict[str, int]:
        """The process of each guest that runs, by the guest's name, in this PID namespace; none for those outside."""

    def pids_outside(self, names: Collection[str]) -> dict[str, int]:
        """The same of those outside of this PID namespace alone, as the host numbers them."""

    def host_pids(self) -> list[int]:
        """The processes of all guests that run outside of this PID namespace, as the host numbers them; any thread."""


class Hypervisor(Protocol):
    """A connection to one hypervisor. Every method has a deadline and runs off the event loop.

    All raise HypervisorError when libvirt refuses, and DeadlineExceeded when it does not answer.
    """

    @property
    def guest_disks(self) -> GuestDisks: ...

    @property
    def statistics(self) -> GuestStatistics: ...

    @property
    def watch(self) -> GuestWatch: ...

    async def open(self) -> None:
        """Connect, make the lab's bridge; raises HypervisorUnavailable."""

    @property
    def network(self) -> LabNetwork:
        """The guests' network, once `open` has returned."""

    async def accelerator(self) -> Accelerator:
        """``kvm`` where the guests' kernel came up under it, see `kvm_probe`, else ``tcg``. Cached."""

    async def facts(self) -> dict[str, Any]:
        """Versions of libvirt and QEMU, machine type, CPU model: JSON values for the run's ``host``."""

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        """Make overlays and start all domains, side by side. On an error, or a cancellation, none of them is left."""

    async def save(self, name: str, folder: Path) -> None:
        """Freeze a guest that was created without a network: ``ram``, ``disk.qcow2`` and ``machine.json`` in `folder`.

        The guest is gone afterwards, whether that succeeded or not. The overlay's backing file is named by its
        absolute path; see `frozen`.
        """

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, SavedGuest]) -> None:
        """Start all `specs` from those of `saved` (by the spec's name), side by side; they run when this returns.

        Each gets an overlay of its own on the saved disk and a network card of its own. No guest runs from a RAM state
        that differs from its digests; the saved disk is not compared. On an error, or a cancellation, none of them is
        left. Raises SnapshotError when a saved state is damaged, does not fit, or is refused by QEMU.
        """

    async def plug_data_disks(self, specs: list[DomainSpec]) -> None:
        """Make the data disks of those guests that have one in their resources, and plug them in.

        The guests run, and their kernels are up; they see the disks some moments later. The disks go with their guests.
        Raises RefusedError where there is no room.
        """

    async def prove_levers(
        self, specs: Sequence[DomainSpec], keys: Collection[str], inside: Mapping[str, Mapping[str, str]]
    ) -> list[LeverProof]:
        """What QEMU and the kernel show of those of `keys`, the scenario's words, that can be seen of running guests.

        `inside` has by domain, as far as it could be read, what the files of the guest hold that proofs look at.

        To be called when its disks have worked, as `prove_cache`.
        """

    async def live_settings(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """What can be changed of these guests while they run, such as a limit of a disk, as libvirt has it: by guest,
        each value by its path. Without guests that do not run, and those that libvirt does not describe in time.
        """

    async def network_counts(self, specs: list[DomainSpec]) -> NetworkCounts:
        """What the tunnel and the limits of these guests, which run, have carried until now."""

    async def make_mergeable(self, names: list[str], mergeable: bool) -> dict[str, float]:
        """Let the host's KSM merge pages of these guests' memory, as when they started, or have it unmerged.

        Not to be cancelled. Returns for each guest the seconds for which it may have stood still. Raises
        HypervisorError and DeadlineExceeded; guests may differ then.
        """

    async def agent(
        self, name: str, command: str, arguments: dict[str, Any] | None = None, *, deadline: float = 10.0
    ) -> Any:
        """One command to the guest agent of domain `name`; its ``return`` value."""

    def helper_socket(self, name: str) -> Path | None:
        """The socket of the channel to the resident helper of guest `name`; None where guests have no such channel.

        Nobody answers there while the guest has no helper.
        """

    async def destroy(self, names: list[str]) -> None:
        """Stop domains at once and delete their overlays; guests that have ended already are ignored."""

    async def close(self) -> None:
        """Destroy all guests that still run, undo everything that the journal names, close the connection.

        Raises CleanupIncomplete when something is left.
        """


class GuestDisk:
    """The host's own disk, which is as it is: nothing is done to it. An ordered one, `EmulatedDisk`, is a subclass."""

    @property
    def pid(self) -> int | None:
        """The process that is the disk; None for the host's own, and while it is not open."""
        return None

    @property
    def dead(self) -> bool:
        """Whether the disk has died, so that no guest can run on it any more."""
        return False

    async def begin(self, images: Iterable[Path], tell: Callable[[str], None]) -> None:
        """Put the run's disks and `images` on it; `tell` takes a line for each figure of its proof."""
        for figure in await self.open():
            tell(f"{EMULATED_DISK}, {figure}")
        for image in images:
            await self.cover(image)

    async def open(self) -> list[str]:
        """Make it and put the run's disks on it; a line for each figure of its proof."""
        return []

    async def cover(self, file: Path) -> None:
        """Put a file on it, until it is closed."""

    def covering(self, files: Iterable[Path]) -> AbstractAsyncContextManager[None]:
        """The files lie on it while the block runs."""
        return contextlib.nullcontext()

    async def set_limits(self) -> None:
        """Be as slow as the scenario asks."""

    async def lift_limits(self) -> None:
        """Be as fast as possible."""

    @contextlib.asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """It is slow while the block runs: what prepares and compares outside of it is not measured."""
        await self.set_limits()
        try:
            yield
        finally:
            await self.lift_limits()

    @contextlib.asynccontextmanager
    async def unlimited(self) -> AsyncIterator[None]:
        """Within `limited`: an emulated disk ends at once what is under way while the block runs."""
        await self.lift_limits()
        try:
            yield
        finally:
            await self.set_limits()

    async def until_dead(self) -> NoReturn:
        """Raise HypervisorError, with the cause, when it has died; the host's own never does."""
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    async def close(self) -> None:
        """Take it away."""
