"""What the planner takes and gives: overrides of the command line, facts of the host, and the plan itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from vmlab.model.asset import Asset
from vmlab.model.axes import absent_words
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import Accelerator, AxisValue, CacheMode
from vmlab.model.scenarios.host_settings import HostSettings
from vmlab.model.scenarios.repetition import Warm
from vmlab.telemetry.domains.neighbours import Neighbour

if TYPE_CHECKING:
    from vmlab.model.scenarios.data_backing import DataPlace
    from vmlab.model.scenarios.guest import GuestResources
    from vmlab.model.scenarios.scenario import Scenario
    from vmlab.model.scenarios.table import Table
    from vmlab.system.host_size import Cores
    from vmlab.workloads.target_limits import Target
    from vmlab.workloads.workload_steps import WorkloadParams


ForClaims = Literal["claims", "claims-once"]
"""Words for a number of repeats that a scenario's claims take: with `planned_looks` at them, or with one."""
FOR_CLAIMS: tuple[ForClaims, ...] = get_args(ForClaims)


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line changes of a scenario. None keeps the scenario's value.

    `repeats` of `FOR_CLAIMS` stand for the `looks` of the scenario (`with_enough_repeats`).
    With `looks`, only cells that the scenario's claims need are run, and claims are looked at after so many repeats.
    The run may take `for_seconds`, and ends after `repeats` too where both are given.
    `sets` holds assignments as they were typed, such as ``workloads.web.requests=500``. `control` makes it a control
    run, which has `least_repeats` or more unless a number is asked for. `assets` are as typed, ``NAME=PATH``. With
    `loop`, workloads start again for so many seconds of each cell. With `targets`, a missed target fails the run for
    whoever started it. `variables` are those of the command line, and in a run all that the scenario's text has; None
    is of runs before there were any, whose texts hold as they are written. `files` are what workloads send of the
    scenario's folder, as `FilesBeside` keeps it.

    Where it comes as JSON, types alone are checked: the planner refuses what is out of bounds, from wherever it comes.
    """

    size: str = "demo"
    tiles: tuple[int, ...] | None = None
    cache: tuple[CacheMode, ...] | None = None
    hosts: tuple[str, ...] | None = None
    repeats: int | ForClaims | None = None
    looks: tuple[int, ...] | None = None
    for_seconds: float | None = None
    again: int | None = None
    again_failed: bool = False
    no_wait: bool = False
    sets: tuple[str, ...] = ()
    seed: int | None = None
    allow_overcommit: bool = False
    allow_unsafe: bool = False
    allow_noise: bool = False
    allow_equal_weight: bool = False
    cold: bool = False
    control: bool = False
    least_repeats: int | None = None
    assets: tuple[str, ...] = ()
    loop: float | None = None
    steady: float | None = None
    targets: bool = False
    hypervisor: str | None = None
    variables: dict[str, str] | None = None
    files: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the plan must fit into. `accelerator_guess` was not probed: only a booted kernel proves KVM.

    `unsettable` has, for each host setting that cannot be changed here, the reason, `most_requests` the largest
    ``nr_requests`` of the guests' disks by their scheduler, under no name that with the present one. `in_memory` is the
    file system of the guests' disks where that is in memory, such as ``tmpfs``; `no_overlay` the same where guests on
    the host cannot have their files there. `images` has the bytes of each image's disk, by its name;
    `windows_images` names those with Windows; `assets` has the user's own copies of suites, by their names. None where
    they are not known, and then every name passes. `lacked_programs` has what each added image is known to lack.
    `lacking` has the reason for what guests cannot have here, such as ``vxlan``, ``package redis-server``. `neighbours`
    are the guests that run here already. `nodes` are the host's NUMA nodes. `no_locked_memory` is why no guest's memory
    can be locked; empty where it can. `cores` has the CPUs of each core; None where they are not known, and then any
    number is there. `kvm_refuses` where KVM's device opens and KVM is known not to work. `layers` has the bytes on disk
    of each layer that is built, by its packages, in order and with spaces between.
    """

    memory_available_bytes: int
    memory_total_bytes: int
    disk_free_bytes: int
    cpus: int
    accelerator_guess: Accelerator
    unsettable: Mapping[str, str] = field(default_factory=dict)
    most_requests: Mapping[str, int] = field(default_factory=dict)
    in_memory: str | None = None
    no_overlay: str | None = None
    images: Mapping[str, int] | None = None
    assets: Mapping[str, Asset] | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    lacked_programs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    windows_images: tuple[str, ...] | None = None
    neighbours: tuple[Neighbour, ...] = ()
    cores: Cores | None = None
    nodes: tuple[int, ...] | None = None
    no_locked_memory: str = ""
    kvm_refuses: bool = False
    layers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GuestPlan:
    """One guest of one cell. `key` is unique within the cell and safe, such as ``t1-file-a``; `tile` counts from 1."""

    key: str
    tile: int
    guest: str
    roles: tuple[str, ...]
    resources: GuestResources

    @property
    def machine(self) -> str:
        """What its snapshot depends on besides its work: the attributes that a guest sees, as JSON."""
        return json.dumps(self.resources.seen(), sort_keys=True)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """One workload of one tile of one cell. `source` and `target` are guests' keys; `source` may be ``host``."""

    name: str
    tile: int
    kind: str
    params: WorkloadParams
    source: str
    target: str | None
    asset: Asset | None = None


@dataclass(frozen=True, slots=True)
class CellPlan:
    """One point of the axes, one repeat. `index` counts from 1 in the order of execution, `repeat` from 1, which is
    also the number of the cell's block: the cells of one repeat follow each other. Repeat 0 is the warm-up.

    `memory_bytes` is what the guests are given, `disk_bytes` what is written, `seconds` an estimate, `host` the host's
    settings for it, `targets` what each of its tiles must deliver. `guests` are virtual machines, `bare` are guests on
    the host itself. `warm` are the caches that stay as preparation left them. `again_of` is the number of the cell that
    it measures again, 0 for none.
    """

    index: int
    axes: dict[str, AxisValue]
    repeat: int
    tiles: int
    guests: tuple[GuestPlan, ...]
    workloads: tuple[WorkloadPlan, ...]
    memory_bytes: int
    disk_bytes: int
    seconds: float
    again_of: int = 0
    host: HostSettings = field(default_factory=HostSettings)
    targets: tuple[Target, ...] = ()
    bare: tuple[GuestPlan, ...] = ()
    warm: Warm = False

    @property
    def added_images(self) -> tuple[str, ...]:
        """The images that users have added and its guests start from, by name. With any, all of its guests boot."""
        return tuple(dict.fromkeys(guest.resources.image for guest in self.guests if not guest.resources.is_labs))

    @property
    def works_on_host(self) -> bool:
        """Whether a workload has a side on the host itself."""
        return bool(self.bare) or any(HOST_PLACE in (one.source, one.target) for one in self.workloads)

    @property
    def cache(self) -> CacheMode | None:
        """The cache mode of all guests; None where they differ, and where there is no guest."""
        modes = {guest.resources.cache for guest in self.guests}
        return modes.pop() if len(modes) == 1 else None


def repeats_within(seconds: float, once: Sequence[CellPlan]) -> int:
    """How many repeats of the cells in `once` fit into a time by the estimate; one in any case."""
    return max(1, int(seconds / max(1e-3, sum(cell.seconds for cell in once))))


Place = tuple[object, ...]


def place_of(axes: Mapping[str, AxisValue], repeat: int) -> Place:
    """What identifies a planned cell, whatever the number under which it is recorded."""
    return (repeat, *sorted((name, str(value)) for name, value in axes.items()))


@dataclass(frozen=True, slots=True)
class AbsentPoint:
    """A value of an axis that has no cell, and why: a line of plan and results instead of figures."""

    axis: str
    value: AxisValue
    reason: str

    def __str__(self) -> str:
        return absent_words(self.axis, [self.value], self.reason)


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """Why a claim has no answer here: a sentence for each rule, and whether emulation is what it would describe."""

    because: tuple[str, ...] = ()
    of_emulation: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario made concrete. `scenario` has size and assignments applied; maxima are over cells, never sums.

    `cells` are all that may run, and `seconds` is the time for all of them; with `until` the run may end after
    `cells_at_least`.

    `size` is the one that really runs: ``full`` where the scenario has no such size. `notes` are lines for people
    that belong on the results, such as memory overcommit. A `control` run has one point on both sides. `loop` is for
    how many seconds the workloads of each cell start again, None where they do not. `targets_decide` is whether a
    missed target fails the run for whoever started it.

    `again` is how many times at most a cell is measured again that something outside of it disturbed, or, with
    `again_failed`, one that failed. A plan that `waits` has its workloads start in a quiet second. `unanswerable` has
    the claims that this host and this size cannot answer, by their sentences.
    """

    scenario: Scenario
    size: str
    seed: int
    cells: tuple[CellPlan, ...]
    seconds: float
    memory_bytes: int
    disk_bytes: int
    guests: int
    table: Table
    notes: tuple[str, ...]
    absent: tuple[AbsentPoint, ...] = ()
    control: bool = False
    loop: float | None = None
    targets_decide: bool = False
    again: int = 0
    again_failed: bool = False
    waits: bool = True
    unanswerable: Mapping[str, Unanswerable] = field(default_factory=dict)

    @property
    def repeats_at_least(self) -> int:
        """How many repeats run in any case."""
        return self.scenario.repeats if self.scenario.until is None else self.scenario.until.at_least

    @property
    def repeats_expected(self) -> int:
        """How many repeats there are by the estimate, where the run ends with its time; else `repeats_at_least`."""
        limit = self.scenario.time_limit
        if limit is None or not self.cells:
            return self.repeats_at_least
        fitting = repeats_within(limit, [cell for cell in self.cells if cell.repeat == 1])
        return min(fitting, self.cells[-1].repeat)

    @property
    def cold(self) -> bool:
        """Whether every guest boots, and none is restored from a snapshot."""
        return self.scenario.provision == "cold"

    @property
    def on_hosts_libvirt(self) -> bool:
        """Whether guests are in the host's own libvirt."""
        return self.scenario.hypervisor != "embedded"

    @property
    def added_images(self) -> tuple[str, ...]:
        """The images that users have added and any cell needs, by name."""
        return tuple(dict.fromkeys(name for cell in self.cells for name in cell.added_images))

    @property
    def layers(self) -> tuple[tuple[str, ...], ...]:
        """The packages of each layer on vmlab's own image that any guest starts from."""
        asked = (guest.resources.packages for cell in self.cells for guest in cell.guests)
        return tuple(dict.fromkeys(packages for packages in asked if packages))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of a fleet that cells are varied over; none where that is no axis."""
        axis = self.scenario.axes.get(HOST_PLACE)
        return () if axis is None else tuple(map(str, axis.values))

    @property
    def data_places(self) -> tuple[DataPlace, ...]:
        """Where any virtual machine has its data disk."""
        places = (guest.resources.data_place for cell in self.cells for guest in cell.guests)
        return tuple(dict.fromkeys(place for place in places if place is not None))

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools of a Ceph cluster that any guest has its data disk in."""
        return tuple(place.name for place in self.data_places if place.kind == "rbd")

    @property
    def volumes(self) -> dict[str, list[dict[str, int]]]:
        """By volume group the logical volumes of each cell: their bytes by the guest's key."""
        groups = [place for place in self.data_places if place.kind == "lvm"]
        return {
            group.name: [
                {one.key: one.resources.data_bytes or 0 for one in cell.guests if one.resources.data_place == group}
                for cell in self.cells
            ]
            for group in groups
        }

    @property
    def huge_pages(self) -> tuple[int, ...]:
        """Bytes of the huge pages that are reserved for any guest."""
        sizes = (guest.resources.page_bytes for cell in self.cells for guest in cell.guests)
        return tuple(sorted({size for size in sizes if size is not None}))

    @property
    def guest_keys(self) -> tuple[str, ...]:
        """The scenario's keys of guests that have another value than the usual one in any cell."""
        given = (guest.resources.given() for cell in self.cells for guest in cell.guests)
        return tuple(dict.fromkeys(key for keys in given for key in keys))

    @property
    def assets(self) -> dict[str, Asset]:
        """The users' own copies of suites that any workload has, by name."""
        used = [workload.asset for cell in self.cells for workload in cell.workloads]
        return {asset.name: asset for asset in used if asset is not None}

    @property
    def cells_at_least(self) -> tuple[CellPlan, ...]:
        """The cells that run in any case."""
        until = self.scenario.until
        return self.cells if until is None else tuple(c for c in self.cells if c.repeat <= until.at_least)

    @property
    def host_settings(self) -> tuple[str, ...]:
        """The host settings that any cell changes, by the scenario's keys."""
        return tuple(dict.fromkeys(name for cell in self.cells for name in cell.host.asked()))
