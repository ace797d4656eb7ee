"""Checks the images of a scenario's guests: on this host, and apart from any host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmlab.model.guest import LAB_IMAGE
from vmlab.model.scenario import Guest, Scenario
from vmlab.model.units import format_bytes
from vmlab.plan.problems import Place, Problem, meant, shorten

SERVED = ("fileserver",)
"""The roles that are set up in a guest of an added image."""


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
            if role not in SERVED:
                message = f"a guest of an added image can have the role {' or '.join(SERVED)}, or none; not {role}"
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


def _of_disk(name: str, guest: Guest) -> Place:
    return ("guests", name, "disk" if "disk_bytes" in guest.model_fields_set else "image")
