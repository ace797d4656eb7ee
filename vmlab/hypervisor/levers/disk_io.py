"""`io`: the interface by which QEMU reads and writes the files and devices below a guest's disks.

QMP does not name it, the kernel does. Linux AIO maps its ring of completions into the process, as ``/[aio]``, and
io_uring has a descriptor. QEMU 10.2 and newer have such a descriptor for each event loop whatever their disks use
(util/fdmon-io_uring.c), and show no more than whether it is Linux AIO. A process shows which interfaces it uses, not
for which of its files: a guest is proved as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu, child_of
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_RING = "anon_inode:[io_uring]"
_COMPLETIONS = "/[aio]"
_BY = "/proc/PID/fd, /proc/PID/maps"
_RINGS_OF_LOOPS = (10, 2)
_NOT_OF_RINGS = "/proc/PID/maps; whether it is io_uring or threads, as QEMU was told"


class DiskIoLever(GuestLever):
    """The attribute ``io`` of a disk's driver."""

    keys = ("io", "data_io")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Threads, which work in every cache mode, unless the scenario says otherwise."""
        if place in _of_host(asked):
            child_of(disk, "driver").set("io", asked.of_disk("io", place))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """One of each key; all disks together use what the process shows."""
        asked = qemu.asked
        wanted = {asked.of_disk("io", place) for place in _of_host(asked)} - {"threads"}
        shown, by = set(_shown(qemu)), _BY
        if _has_rings_anyway(qemu):
            shown, by = {one for one in shown if one == "native"} | (wanted & {"io_uring"}), _NOT_OF_RINGS
        for key, own in {qemu.key_of("io", place): asked.of_disk("io", place) for place in _of_host(asked)}.items():
            found = own if shown == wanted else " and ".join(sorted(shown)) or "threads"
            yield qemu.proof(key, own, found, by, agrees=shown == wanted)


def _of_host(asked: GuestResources) -> list[DiskPlace]:
    """The disks that are files or devices of the host; Ceph's driver sends its requests itself."""
    return [place for place in asked.disk_places if place == "root" or asked.pool is None]


def _shown(qemu: RunningQemu) -> Iterator[str]:
    if _RING in qemu.descriptors():
        yield "io_uring"
    if any(_COMPLETIONS in line for line in (qemu.process / "maps").read_text().splitlines()):
        yield "native"


def _has_rings_anyway(qemu: RunningQemu) -> bool:
    version = qemu.monitor("query-version")["qemu"]
    return (version["major"], version["minor"]) >= _RINGS_OF_LOOPS
