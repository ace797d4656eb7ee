"""Checks the images of a scenario's guests: on this host, and apart from any host."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from vmlab.model.roles import ADDED_ROLES
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.model.scenarios.scenario import Guest, Scenario, WorkloadEntry
from vmlab.model.units import format_bytes
from vmlab.plan.scenario_file.problems import Place, Problem, meant, shorten
from vmlab.workloads.contract import WorkloadParams
from vmlab.workloads.registry import kinds
from vmlab.workloads.services import needed_programs, program_words


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
        if guest.is_labs:
            continue
        if guest.image not in images:
            known = meant(guest.image, [LAB_IMAGE, *sorted(images)])
            message = f"there is no image {shorten(guest.image)!r}; {known} (vmlab image add makes one known)"
            yield Problem(("guests", name, "image"), message)
        elif guest.disk_bytes < images[guest.image]:
            size = format_bytes(images[guest.image])
            yield Problem(_of_disk(name, guest), f"image {guest.image} needs a disk of {size} or more")


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


def _of_disk(name: str, guest: Guest) -> Place:
    return ("guests", name, "disk" if "disk_bytes" in guest.model_fields_set else "image")
