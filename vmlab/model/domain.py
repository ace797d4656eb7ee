"""What is known of a domain of the host's own: a guest that no lab has started, and its disks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vmlab.model.cache import CACHE_FLAGS
from vmlab.model.run import CACHE_MODES

UNKNOWN = "unknown"
"""A disk's cache mode or format that nothing tells."""


@dataclass(frozen=True, slots=True)
class DomainDisk:
    """A disk of a domain: the `target` by which its owner knows it, and its `file` on the host.

    `cache` is what the domain's XML or QEMU's arguments say, `writeback` where they leave it to QEMU; `o_direct` is
    the flag of QEMU's open file, None where that cannot be read. `below` is the kernel's name of the host's disk that
    holds the file, empty where that is not known. `protocol` is QEMU's driver that reaches the data: ``file``,
    ``host_device``, ``rbd``, ``nbd``, ``nvme``, ``vhost-user``, …; `file_system` is the kernel's type of the one that
    holds the file, such as ``ext4``, ``nfs`` or ``zfs``, empty where that is not known.
    """

    target: str
    file: str
    format: str = UNKNOWN
    cache: str = UNKNOWN
    o_direct: bool | None = None
    below: str = ""
    protocol: str = UNKNOWN
    file_system: str = ""

    @property
    def direct(self) -> bool | None:
        """Whether the host's page cache is left out: by the open file, else by what is said; None for unknown."""
        if self.o_direct is not None:
            return self.o_direct
        return next((CACHE_FLAGS[mode].direct for mode in CACHE_MODES if mode == self.cache), None)

    @property
    def cache_words(self) -> str:
        """``none``, or what QEMU really does where its open file says otherwise, such as ``O_DIRECT, not writeback``.

        A mode of which only the open file is known is ``direct`` or ``page cache``.
        """
        said = next((CACHE_FLAGS[mode].direct for mode in CACHE_MODES if mode == self.cache), None)
        if self.o_direct is None or said == self.o_direct:
            return self.cache
        found = "direct" if self.o_direct else "page cache"
        return found if said is None else f"{found}, not {self.cache}"


@dataclass(frozen=True, slots=True)
class Domain:
    """A running guest of the host's own. `name` is unique among those that run, and names its figures in a sample.

    `source` is ``libvirt``, or ``process`` where its QEMU is all that tells of it; `pid` is 0 where that is not
    visible. `memory_bytes` and `vcpus` are 0 where they are not known.
    """

    name: str
    source: str
    pid: int = 0
    uuid: str = ""
    vcpus: int = 0
    memory_bytes: int = 0
    accelerator: str = UNKNOWN
    disks: tuple[DomainDisk, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `DomainsSeen` and ``vmlab top --json`` have it."""
        return {**asdict(self), "disks": [asdict(disk) for disk in self.disks]}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Domain:
        """The inverse of `to_json`; the event has checked the types. Keys of a newer version are left out."""
        known = {name: body[name] for name in cls.__slots__ if name in body and name != "disks"}
        disks = tuple(
            DomainDisk(**{name: one[name] for name in DomainDisk.__slots__ if name in one})
            for one in body.get("disks", ())
        )
        return cls(**known, disks=disks)
