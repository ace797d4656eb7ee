"""What a guest is started from: its image, its resources, its place on the network, and where a data disk lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vmlab.model.scenarios.guest import GuestResources


@dataclass(frozen=True, slots=True)
class BootImage:
    """Files that a guest boots from: a raw disk, kernel, initrd, and the kernel's base command line.

    Without a kernel the guest's firmware boots the disk.
    """

    disk: Path
    kernel: Path | None
    initrd: Path | None
    command_line: str


@dataclass(frozen=True, slots=True)
class Translated:
    """The IPv4 address that a guest has, and the elastic one by which others reach it."""

    own: str
    elastic: str


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """One guest as the hypervisor needs it. `name` is unique within the lab and safe (``[a-z0-9-]``).

    `guest` is its name in the scenario, `tile` its tile, `resources` what it is given apart from the network. A guest
    that will be saved has no `network`: the card and its address would be part of what is saved.

    A guest with an `image` of its own starts from that in place of the call's. One with an `address`, IPv4, is given
    it when it asks by DHCP. `translated` is that of a guest with an elastic address.
    """

    name: str
    guest: str
    tile: int
    resources: GuestResources
    mac: str
    network: bool = True
    image: BootImage | None = None
    address: str | None = None
    translated: Translated | None = None


@dataclass(frozen=True, slots=True)
class PoolImage:
    """An image in a pool; `conf` is the file with the cluster's configuration."""

    pool: str
    image: str
    conf: Path

    def __str__(self) -> str:
        return f"rbd:{self.pool}/{self.image}"


@dataclass(frozen=True, slots=True)
class LogicalVolume:
    """A logical volume of LVM, by the names of its group and its own."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}/{self.name}"

    @property
    def device(self) -> Path:
        """Its block device."""
        return Path("/dev", self.group, self.name)
