"""The hosts of a run of a fleet: what they are, what differs between them, and which cells each ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import FleetHostDocument
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import carried

HOST_AXIS = "host"
DECISIVE = ("accelerator", "cpu", "microcode", "cpus", "memory_bytes", "kernel", "qemu", "libvirt", "governor", "disk")
"""The facts of a host that its figures depend on; hosts are alike where all of these are the same."""
PACKAGES = "packages"
"""Among the facts, the versions of Debian's packages in the guests' layers, by name; hosts differ by them, too."""
_OF_DISK = ("filesystem", "scheduler", "rotational", "emulated", "profile")
_MEMORY_STEP = 64 * 2**20
"""Kernels of one machine differ by a little in how much memory they have left."""


def host_documents(known: RunTimeline) -> list[FleetHostDocument]:
    """The hosts, in the order in which they joined."""
    return [
        carried(FleetHostDocument, joined, left_out=known.left_out[name].reason if name in known.left_out else None)
        for name, joined in known.hosts.items()
    ]


def decisive(accelerator: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Of a host's facts those that its figures depend on, as words."""
    every = {**facts, "accelerator": accelerator}
    disk = every.get("disk")
    if isinstance(disk, Mapping):
        every["disk"] = " ".join(f"{name} {disk[name]}" for name in _OF_DISK if disk.get(name) is not None)
    memory = every.get("memory_bytes")
    if isinstance(memory, int):
        every["memory_bytes"] = round(memory / _MEMORY_STEP) * _MEMORY_STEP
    known = {name: str(every[name]) for name in DECISIVE if every.get(name) is not None}
    packages = every.get(PACKAGES)
    return known | {
        f"package {name}": str(version)
        for name, version in sorted(packages.items() if isinstance(packages, Mapping) else ())
    }


def differences(hosts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What differs between hosts, of each its `decisive` facts: ``kernel: hv1 6.1.0, hv2 6.12.0``; none where alike."""
    found = []
    for name in dict.fromkeys((*DECISIVE, *(name for facts in hosts.values() for name in facts))):
        values = {host: facts.get(name, "unknown") for host, facts in hosts.items()}
        if len(set(values.values())) > 1:
            found.append(f"{name}: " + ", ".join(f"{host} {value}" for host, value in values.items()))
    return found


def common_facts(hosts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts that are the same on all hosts, and all of their names."""
    first, *others = hosts
    same = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
    return {**same, "hostname": ", ".join(str(host.get("hostname", "")) for host in hosts)}


def host_notices(known: RunTimeline) -> Iterator[str]:
    """What a reader of the run's figures must know of its hosts; nothing of a run of one host."""
    if not known.hosts:
        return
    found = differences({name: decisive(one.accelerator, one.facts) for name, one in known.hosts.items()})
    if found:
        yield f"the hosts differ in {'; '.join(found)}"
    if any(HOST_AXIS not in cell.told.axes for cell in known.cells.values()):
        yield f"blocks of cells are spread over hosts, and compared within each: {_blocks(known)}"
    for name, left in known.left_out.items():
        yield f"host {name} was left out: {left.reason}"


def _blocks(known: RunTimeline) -> str:
    blocks = grouped((cell.host, cell.told.repeat) for cell in known.cells.values() if cell.host)
    in_order = ((host, ", ".join(map(str, sorted(set(those))))) for host, those in sorted(blocks.items()))
    return "; ".join(f"{host} repeats {repeats}" for host, repeats in in_order)
