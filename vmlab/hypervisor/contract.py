"""What the engine asks of a hypervisor. One implementation is real (`embedded`); a fake lives in tests alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vmlab.model.run import Accelerator, CacheMode, CacheProof


@dataclass(frozen=True, slots=True)
class BootImage:
    """Files that a guest boots from: a raw ext4 root disk, kernel, initrd, and the kernel's base command line."""

    disk: Path
    kernel: Path
    initrd: Path
    command_line: str


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """One guest as the hypervisor needs it. `name` is unique within the lab and safe (``[a-z0-9-]``).

    `guest` and `tile` are the scenario's words for it. `memory_bytes` and `disk_bytes` are what the guest sees;
    `queues` counts virtio-blk queues; `cpu_shares` is the cgroup weight, None for the default of 1024.
    A guest that will be saved has no `network`: the card and its address would be part of what is saved.
    """

    name: str
    guest: str
    tile: int
    vcpus: int
    memory_bytes: int
    disk_bytes: int
    mac: str
    cache: CacheMode
    queues: int = 1
    cpu_shares: int | None = None
    network: bool = True


class Hypervisor(Protocol):
    """A connection to one hypervisor. Every method has a deadline and runs off the event loop.

    All raise HypervisorError when libvirt refuses, and DeadlineExceeded when it does not answer.
    """

    async def open(self) -> None:
        """Connect, make the lab's bridge; raises HypervisorUnavailable."""
        ...

    async def accelerator(self) -> Accelerator:
        """``kvm`` where a tiny kernel really booted under it within a second or two, else ``tcg``. Cached."""
        ...

    async def facts(self) -> dict[str, Any]:
        """Versions of libvirt and QEMU, machine type, CPU model: JSON values for the run's ``host``."""
        ...

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        """Make overlays and start all domains, side by side. On an error none of them is left running."""
        ...

    async def save(self, name: str, folder: Path) -> None:
        """Freeze a guest that was created without a network: ``ram``, ``disk.qcow2`` and ``machine.json`` in `folder`.

        The guest is gone afterwards, whether that succeeded or not. The overlay's backing file is named by its
        absolute path; see `frozen`.
        """
        ...

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, Path]) -> None:
        """Start all `specs` from the folders of `saved` (by the spec's name), side by side; they run when this returns.

        Each gets an overlay of its own on the saved disk and a network card of its own. On an error, or a cancellation,
        none of them is left. Raises SnapshotError when a saved state is damaged or does not fit.
        """
        ...

    async def prove_cache(self, specs: list[DomainSpec]) -> list[CacheProof]:
        """Read O_DIRECT of every disk file (overlay and all below it) from /proc, and QMP's cache flags.

        Only once the guests' own drivers are up, as when the agent answers: until then the firmware drives the disk,
        and firmware that asks for no flushes turns the device's write cache off.
        """
        ...

    async def agent(
        self, name: str, command: str, arguments: dict[str, Any] | None = None, *, deadline: float = 10.0
    ) -> Any:
        """One command to the guest agent of domain `name`; its ``return`` value."""
        ...

    async def cpu_seconds(self, names: list[str]) -> dict[str, float]:
        """CPU time that each domain has used, in seconds, in one bulk call."""
        ...

    async def domain_stats(self) -> dict[str, dict[str, int]]:
        """libvirt's bulk statistics, by domain name; without waiting for busy domains."""
        ...

    async def destroy(self, names: list[str]) -> None:
        """Stop domains at once and delete their overlays; those that are gone already are no error."""
        ...

    async def close(self) -> None:
        """Destroy whatever of the lab still runs, remove bridge and cgroup folders, close the connection."""
        ...
