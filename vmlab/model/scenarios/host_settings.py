"""Settings of the whole host that a scenario may change while its cells run; they are put back afterwards."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from vmlab.model.scenarios.disk_profiles import DiskName
from vmlab.model.scenarios.lever import Lever
from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.units import Bytes

Ksm = Literal["on", "off"]
Scheduler = Literal["none", "mq-deadline", "kyber", "bfq"]
_PAGE_BYTES = 4096


def _whole_pages(count: int) -> int:
    if count % _PAGE_BYTES:
        raise ValueError("needs a multiple of 4 KiB: the kernel counts in pages")
    return count


class HostSettings(ScenarioPart):
    """The settings that a cell needs; the others stay as they are on the host. Aliases are the keys in the scenario."""

    ksm: Ksm | None = None
    """Kernel samepage merging: ``on`` scans 1,000 pages every 20 ms, ``off`` stops merging."""
    thp: Literal["always", "madvise", "never"] | None = None
    """Transparent huge pages for anonymous memory: always, madvise or never."""
    read_ahead_bytes: Annotated[
        Annotated[Bytes, Field(ge=0, le=2**30), AfterValidator(_whole_pages)] | None, Field(alias="read_ahead")
    ] = None
    """How far the host reads ahead on the disk that holds the guests' files, such as 128 KiB; 0 for not at all."""
    scheduler: Scheduler | None = None
    """I/O scheduler of the disks that hold the guests' files: none, mq-deadline, kyber or bfq, if the kernel has it."""
    nr_requests: Annotated[int, Field(ge=4, le=2**16)] | None = None
    """Requests in the queue of each disk that holds the guests' files, within its scheduler's limit."""
    swappiness: Annotated[int, Field(ge=0, le=200)] | None = None
    """How readily the kernel swaps instead of giving up page cache: 0 to 200; only with cgroup v2."""
    dirty_ratio: Annotated[int, Field(ge=1, le=100)] | None = None
    """The part of free memory, in percent, that may be dirty before writers must wait."""

    def asked(self) -> dict[str, str | int]:
        """The settings that are given, by the scenario's keys; sizes are ints of bytes."""
        return {name: value for name, value in self.model_dump(by_alias=True).items() if value is not None}


class HostSize(NamedTuple):
    """How large a host is ordered; None for what stays the host's own."""

    cpus: int | None
    memory_bytes: int | None


class Host(HostSettings):
    """Settings of the host while cells run, and what stands in for a part of it in all cells of a run."""

    disk: DiskName | None = None
    """An emulated disk that holds all files of the guests: hdd-7200 or raid10-4; the host's own disk if left out."""
    cpus: Annotated[int, Field(ge=1)] | None = None
    """The number of host CPUs that guests and workloads on the host share; all if left out."""
    memory_bytes: Annotated[
        Annotated[Bytes, Field(ge=64 * 2**20), AfterValidator(_whole_pages)] | None,
        Field(alias="memory"),
        Lever("memory of the limited host", within=5.0, unit="B", limit=True),
    ] = None
    """The host memory that guests and workloads share, such as 4 GiB, page cache included; all if left out."""

    @property
    def size(self) -> HostSize | None:
        """The ordered host; None where neither its CPUs nor its memory are ordered."""
        return None if self.cpus is None and self.memory_bytes is None else HostSize(self.cpus, self.memory_bytes)


HOST_SETTINGS = tuple(field.alias or name for name, field in HostSettings.model_fields.items())
"""The scenario's keys for them. Each is the name of an axis, after ``host.``"""
HOST_PARTS = tuple(
    field.alias or name for name, field in Host.model_fields.items() if name not in HostSettings.model_fields
)
"""The keys that are the same in all cells of a run, so that no axis varies them."""


def why_not_varied(path: str) -> str:
    """Why no axis can vary what `path` names; empty for everything but a part of the host."""
    part = path.removeprefix("host.")
    if part == path or part not in HOST_PARTS:
        return ""
    return f"is the same in all cells of a run, so no axis varies it; write `host: {{{part}: …}}`, or --set {path}=…"
