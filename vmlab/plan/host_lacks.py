"""What a scenario asks for and cannot have: of this host's kernel and CPUs, of guests on the host, of images, of the
host's own libvirt, and of what this installation of vmlab has left out.

Each part of vmlab that few scenarios need is a package of its own, which an installation may leave out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vmlab.model.names import HOST_PLACE
from vmlab.model.quantities import exact_bytes
from vmlab.model.roles import ADDED_ROLES
from vmlab.model.scenarios.cpu_levers import PIN_KEYS
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.model.scenarios.scenario import Guest, Scenario, WorkloadEntry
from vmlab.plan.pinning import lack_for_pin, pin_fault
from vmlab.plan.placing import PlacedAxis, PlacedValue
from vmlab.plan.scenario_file.problems import Place, Problem, meant, shorten
from vmlab.plan.terms import CellPlan, HostFacts, Plan
from vmlab.system.host_size import Cores, lack_of_cpus, last_cpus
from vmlab.system.mounts import cpu_list
from vmlab.telemetry.setting_files import NO_TRANSPARENT
from vmlab.workloads.registry import kinds
from vmlab.workloads.services import needed_programs, program_words
from vmlab.workloads.workload_steps import WorkloadParams

COPIED_BYTES = 128 * 2**20
"""What a guest on the host takes of its disk for its own /etc and /var: 90 MiB of the image, and what its servers add.
"""
CEPH = "vmlab.hypervisor.ceph.rbd"
LVM = "vmlab.hypervisor.lvm.logical_volumes"
LABS_CPU = "cpu of vmlab's own image "
"""Before a value of ``cpu`` in the names of what a host lacks."""
OVERLAY_NETWORK = "vmlab.hypervisor.overlay_network.guest_networks"
EMULATED_DISK = "vmlab.hypervisor.emulated_disk.emulated_disk"
"""The module by which each is entered. `vmlab.workloads.registry` finds the kinds of suites, where they are."""


def without_lacking(axes: Sequence[PlacedAxis], scenario: Scenario, host: HostFacts) -> list[PlacedAxis]:
    """The axes, with the values that this host cannot have marked as absent, and the reason."""
    cores = cores_of(host, scenario.host.cpus)

    def marked(value: PlacedValue) -> PlacedValue:
        reason = _lacking_network(value, host.lacking) or _lacking_memory(value, host)
        if cores and reason is None:
            reason = _lacking_cpus(value, scenario, cores) or _lacking_pin(value, cores)
        return replace(value, settings=(), absent=reason) if reason else value

    return [replace(axis, values=tuple(map(marked, axis.values))) for axis in axes]


def lacked_by(cell: CellPlan, host: HostFacts, ordered_cpus: int | None) -> str | None:
    """Why a guest of the cell, or the host's disk, cannot be as it is planned on this host, or the ordered one; None
    where all can.
    """
    if (reason := host.unsettable.get(f"scheduler {cell.host.scheduler}")) is not None:
        return f"the scenario sets host.scheduler: {cell.host.scheduler}, and {reason}"
    for guest in cell.guests:
        for key in ("network", "bandwidth", "vhost", "io", "data_io", "cpu", "machine", "firmware"):
            reason = _reason(("guests", guest.guest, key), getattr(guest.resources, key), host.lacking)
            if reason is not None:
                return f"guest {guest.guest} has {key}: {getattr(guest.resources, key)}, but {reason}"
        cpu = guest.resources.cpu if guest.resources.is_labs else None
        if cpu is not None and (reason := host.lacking.get(f"{LABS_CPU}{cpu}")) is not None:
            return f"guest {guest.guest} has cpu: {cpu}, but {reason}"
        transparent = guest.resources.huge_pages == "transparent" and cell.host.thp is None
        if transparent and (reason := host.unsettable.get(NO_TRANSPARENT)) is not None:
            return f"guest {guest.guest} has huge_pages: transparent, and {reason}"
        for key in ("huge_pages", "memory_lock", "numa"):
            given = getattr(guest.resources, key)
            if (reason := _lack_of_memory(key, given, host)) is not None:
                return f"guest {guest.guest} has {key}: {shorten(given)}, and {reason}"
    cores = cores_of(host, ordered_cpus)
    for guest in cell.guests if cores else ():
        if cores and (reason := pin_fault(guest.resources, cores)) is not None:
            return f"guest {guest.guest} has {reason}"
    for guest in cell.bare if cores else ():
        if cores and (lack := lack_of_cpus(cores, guest.resources.vcpus, smt=guest.resources.smt)) is not None:
            return f"guest {guest.guest} has on: host, and {lack}"
    # How many CPUs a guest has with the word host is known here alone.
    conflicts = (f"guest {guest.guest}: {why}" for guest in cell.guests for _, why in guest.resources.conflicts())
    return next(conflicts, None)


def too_many_requests(cell: CellPlan, host: HostFacts) -> str | None:
    """Why the kernel would refuse the cell's ``host.nr_requests``; None where it takes it, or nobody knows."""
    wanted, scheduler = cell.host.nr_requests, cell.host.scheduler
    most = host.most_requests.get(scheduler or "")
    if wanted is None or most is None or wanted <= most:
        return None
    which = f"with the scheduler {scheduler}" if scheduler else "with their present scheduler"
    return f"the scenario sets host.nr_requests: {wanted}, and {which} the guests' disks take {most} at most"


def _lacking_network(value: PlacedValue, lacking: Mapping[str, str]) -> str | None:
    reasons = (_reason(place, setting.value, lacking) for place, setting in value.places.items())
    return next(filter(None, reasons), None)


def _reason(place: Place, value: Any, lacking: Mapping[str, str]) -> str | None:
    if len(place) != 3 or place[0] != "guests" or value in (None, "plain", "threads", "q35", "bios"):
        return None
    names = {"bandwidth": "bandwidth", **dict.fromkeys(("network", "io", "data_io"), str(value))}
    names |= {key: f"{key} {value}" for key in ("cpu", "machine", "firmware")}
    if value is True:
        names["vhost"] = "vhost"
    asked = names.get(str(place[2]))
    # The mapping may have to try things out, so it is only asked for what it can know.
    return None if asked is None else lacking.get(asked)


def cores_of(host: HostFacts, ordered_cpus: int | None) -> Cores | None:
    """The cores that a cell may use: those of the limited host where there is one; None where they are not known."""
    return None if host.cores is None else last_cpus(host.cores, ordered_cpus)


def _lacking_cpus(value: PlacedValue, scenario: Scenario, cores: Cores) -> str | None:
    for name, guest in scenario.guests.items():
        given = {place[2]: setting.value for place, setting in value.places.items() if place[:2] == ("guests", name)}
        if given.keys() & {"on", "vcpus", "smt"} and (reason := _lack(guest, given, cores)) is not None:
            return reason
    return None


def _lacking_memory(value: PlacedValue, host: HostFacts) -> str | None:
    given = ((place[-1], setting.value) for place, setting in value.places.items() if place[0] == "guests")
    return next(filter(None, (_lack_of_memory(key, one, host) for key, one in given)), None)


def _lack_of_memory(key: str | int, value: object, host: HostFacts) -> str | None:
    """Why no guest can have its memory so; None also for a value that is reported where it is checked."""
    if key == "huge_pages":
        return host.unsettable.get(f"huge_pages {value}")
    if key == "memory_lock" and value is True:
        return host.no_locked_memory or None
    return _lack_of_node(value, host.nodes) if key == "numa" else None


def _lack_of_node(node: object, nodes: tuple[int, ...] | None) -> str | None:
    """Why no guest can have its memory from this node; None also for a value that is reported where it is checked."""
    if type(node) is not int or nodes is None:
        return None
    if len(nodes) < 2:
        return "this host has one NUMA node, so that there is nothing to choose"
    return None if node in nodes else f"this host has no memory on node {node}; there are {cpu_list(nodes)}"


def _lacking_pin(value: PlacedValue, cores: Cores) -> str | None:
    given = ((place, setting.value) for place, setting in value.places.items())
    pins = (pin for place, pin in given if place[0] == "guests" and place[-1] in PIN_KEYS)
    return next(filter(None, (lack_for_pin(pin, cores) for pin in pins)), None)


def _lack(guest: Guest, given: Mapping[str | int, object], cores: Cores) -> str | None:
    """Why a guest with what is `given` has no CPUs; None also for values that are reported where they are checked."""
    on, count, smt = (given.get(key, getattr(guest, key)) for key in ("on", "vcpus", "smt"))
    if on != "host" or not isinstance(count, int) or not (smt is None or isinstance(smt, bool)):
        return None
    return lack_of_cpus(cores, count, smt=smt)


def unused_tunnels(scenario: Scenario) -> Iterator[Problem]:
    """A workload between guests behind the tunnel, while none goes through it: it would measure another network."""
    behind = {name for name, guest in scenario.guests.items() if guest.network == "vxlan"}
    ends = [(entry.source, entry.target) for entry in scenario.workloads.values() if entry.target is not None]
    if any((source in behind) is not (target in behind) for source, target in ends):
        return
    for _, target in ends:
        if target in behind:
            message = f"guest {target} is behind a tunnel, and no workload goes through it; leave other ends plain"
            yield Problem(("guests", target, "network"), message)
            return


def of_bare_guests(scenario: Scenario) -> Iterator[Problem]:
    """What guests on the host cannot have."""
    for name, guest in scenario.guests.items():
        for key in guest.not_on_host():
            message = f"guest {name} is on the host, where there is no {key} of a virtual machine; leave it out"
            yield Problem(("guests", name, key), message, True)


def not_in_hosts_libvirt(plan: Plan) -> str | None:
    """The first thing that the plan asks for and cannot have there; None where it has all, or is not to be there."""
    if not plan.on_hosts_libvirt:
        return None
    return next((words for cell in plan.cells for words in _asked(plan, cell)), None)


def _asked(plan: Plan, cell: CellPlan) -> Iterator[str]:
    if plan.scenario.host.disk is not None:
        yield f"the scenario has host.disk: {plan.scenario.host.disk}"
    if plan.scenario.host.size is not None:
        yield "the scenario orders a host with host.cpus or host.memory"
    for bare in cell.bare:
        yield f"guest {bare.guest} runs on the host"
    for guest in cell.guests:
        if guest.resources.network != "plain":
            yield f"guest {guest.guest} has network: {guest.resources.network}"
        if guest.resources.bandwidth is not None:
            yield f"guest {guest.guest} has a bandwidth"
        if guest.resources.page_bytes is not None:
            yield f"guest {guest.guest} has huge_pages: {guest.resources.huge_pages}"
        if guest.resources.pool is not None:
            yield f"guest {guest.guest} has its data disk in a pool"
        if guest.resources.data_place is not None and guest.resources.data_place.file_system is not None:
            yield f"guest {guest.guest} has its data disk on a file system that is made for it"
    for workload in cell.workloads:
        if HOST_PLACE in (workload.source, workload.target):
            yield f"workload {workload.name} runs on the host"


def missing_parts(scenario: Scenario) -> Iterator[Problem]:
    """What the scenario asks for and this installation lacks."""
    for module, place in _entered(scenario):
        if not _is_installed(module):
            package = module.rpartition(".")[0]
            yield Problem(place, f"this installation of vmlab lacks the package {package}, which this needs")


def _entered(scenario: Scenario) -> Iterator[tuple[str, Place]]:
    if scenario.host.disk is not None:
        yield EMULATED_DISK, ("host", "disk")
    for name, guest in scenario.guests.items():
        parts = {"rbd": CEPH, "lvm": LVM}
        if guest.data_place is not None and guest.data_place.kind in parts:
            yield parts[guest.data_place.kind], ("guests", name, "backing")
        yield from ((OVERLAY_NETWORK, ("guests", name, key)) for key in guest.beyond_bridge)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def of_added_images(scenario: Scenario) -> Iterator[Problem]:
    """What guests of added images cannot have on any host."""
    for name, guest in scenario.guests.items():
        if guest.is_labs:
            continue
        if scenario.host.disk is not None:
            message = f"an emulated disk takes vmlab's own image alone; guest {name} starts from {guest.image}"
            yield Problem(("guests", name, "image"), message)
        if guest.boot != "lab":
            message = f"boot is of vmlab's own image; guest {name} boots as its image {guest.image} does"
            yield Problem(("guests", name, "boot"), message, True)
        if guest.firmware != "bios":
            message = f"firmware is of vmlab's own image; guest {name} boots image {guest.image} by BIOS"
            yield Problem(("guests", name, "firmware"), message, True)
        if guest.network == "nat":
            message = f"guest {name} of an added image asks for its address on the lab's bridge, and cannot have nat"
            yield Problem(("guests", name, "network"), message)
        for role in guest.role:
            if role not in ADDED_ROLES:
                message = f"a guest of an added image can have the role {' or '.join(ADDED_ROLES)}, or none; not {role}"
                yield Problem(("guests", name, "role"), message)


def on_this_host(scenario: Scenario, images: Mapping[str, int] | None) -> Iterator[Problem]:
    """Images that are not there, or do not fit their guest's disk; `images` as in `HostFacts`."""
    if images is None:
        return
    for name, guest in scenario.guests.items():
        if guest.image not in images and not guest.is_labs:
            known = meant(guest.image, [LAB_IMAGE, *sorted(images.keys() - {LAB_IMAGE})])
            message = f"there is no image {shorten(guest.image)!r}; {known} (vmlab image add makes one known)"
            yield Problem(("guests", name, "image"), message)
        elif not guest.on_host and guest.disk_bytes < (least := images.get(guest.image, 0)):
            key = "disk" if "disk_bytes" in guest.model_fields_set else "image"
            yield Problem(("guests", name, key), f"image {guest.image} needs a disk of {exact_bytes(least)} or more")


def of_lacked_programs(scenario: Scenario, lacked: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Programs that a guest needs and its added image lacks; `lacked` as in `HostFacts`."""
    used = {place for entry in scenario.workloads.values() for place in entry.places}
    for name, guest in scenario.guests.items():
        missing = lacked.get(guest.image, ())
        if name not in used or guest.is_labs or not missing:
            continue
        needed = dict.fromkeys(needed_programs((), data_disk=False), "every guest")
        if guest.data_bytes is not None:
            needed |= {one: "a data disk" for one in needed_programs((), data_disk=True) if one not in needed}
        for role in guest.role:
            needed |= {one: f"role {role}" for one in needed_programs([role], data_disk=False) if one not in needed}
        for workload, entry in scenario.workloads.items():
            sides = zip((entry.on or entry.source, entry.target), kinds()[entry.kind].tools, strict=True)
            tools = [tool for place, side in sides if place == name for tool in side]
            needed |= {one: f"workload {workload}" for one in tools if one not in needed}
        if lines := [f"{program_words(one)} for {user}" for one, user in needed.items() if one in missing]:
            message = f"guest {name} needs what its image {guest.image} lacks: {', '.join(lines)}"
            yield Problem(("guests", name, "image"), message)


def of_windows(
    scenario: Scenario, params: Mapping[str, WorkloadParams], images: Collection[str] | None
) -> Iterator[Problem]:
    """What guests with Windows cannot have, and workloads for Windows on others; `images` as in `HostFacts`."""
    windows = [name for name, guest in scenario.guests.items() if guest.image in (images or ())]
    for name in windows:
        guest = scenario.guests[name]
        if guest.data_bytes is not None:
            yield Problem(("guests", name, "data"), f"{_has_windows(scenario, name)}, where vmlab makes no data disk")
        if guest.role:
            yield Problem(("guests", name, "role"), f"{_has_windows(scenario, name)}, where vmlab sets up no role")
    for workload, given in params.items():
        entry = scenario.workloads[workload]
        needs = kinds()[entry.kind].needs_windows(given.model_dump())
        for key, place in _sides(entry):
            if place in windows and not needs:
                message = f"{_has_windows(scenario, place)}, where fio with engine: windowsaio runs and nothing else"
                yield Problem(("workloads", workload, key), message)
            elif needs and place not in windows and not (images is None and _is_added(scenario, place)):
                message = f"workloads.{workload} needs a guest with Windows, of an image of your own; {place} has Linux"
                yield Problem(("workloads", workload, key), message)


def _sides(entry: WorkloadEntry) -> Iterator[tuple[str, str]]:
    for key, place in (("on", entry.on), ("from", entry.source), ("to", entry.target)):
        if place is not None:
            yield key, place


def _is_added(scenario: Scenario, place: str) -> bool:
    return place in scenario.guests and not scenario.guests[place].is_labs


def _has_windows(scenario: Scenario, guest: str) -> str:
    return f"guest {guest} has Windows (image {scenario.guests[guest].image})"
