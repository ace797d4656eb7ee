"""`vmlab scenario from` of guests of the host's own against their definition, and one copy at work under KVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.host.inside import own_guests
from tests.host.inside.lab import command, measured, require, tell, vmlab
from tests.host.inside.own_guests import OWN_GUESTS, READER, OwnGuest

_FOLDER = Path("/run/copied")
_SMALL = ("--set", "workloads.blocks.size=16 MiB", "--set", "workloads.blocks.time=2 s", "--set", "repeats=1")


def compared() -> None:
    """A copy of each guest that runs is planned; that of the reader runs, and was given what its domain has."""
    own_guests.start()
    before = own_guests.as_they_are()
    _FOLDER.mkdir(exist_ok=True)
    for guest in OWN_GUESTS:
        text = vmlab("scenario", "from", guest.name)
        file = _FOLDER / f"{guest.name}.yaml"
        # Its settings as they are, without the changes of its axis.
        file.write_text(text[: text.index("\naxes:") + 1])
        vmlab("plan", str(file))
    ran = measured(str(_FOLDER / f"{READER.name}.yaml"), *_SMALL, "--concurrent", "--allow-noise")
    _require_like(READER, ran["cells"][0]["settings"])
    after = own_guests.as_they_are()
    for name, was in before.items():
        require(after[name] == was, f"{name} was\n{was}\nand is\n{after[name]}")


def _require_like(guest: OwnGuest, settings: dict[str, Any]) -> None:
    domain = ElementTree.fromstring(command("virsh", "dumpxml", guest.name))
    root, data = domain.iterfind("devices/disk")
    sizes = [command("virsh", "domblkinfo", guest.name, target).split() for target in ("vda", "vdb")]
    capacities = [int(words[words.index("Capacity:") + 1]) for words in sizes]
    machine = next(node.get("machine", "") for node in domain.iterfind("os/type"))
    expected = {
        "vcpus": int(domain.findtext("vcpu", "")),
        "memory_bytes": int(domain.findtext("memory", "")) * 1024,
        "disk_bytes": capacities[0],
        "data_bytes": capacities[1],
        "cache": _driver(root, "cache"),
        "data_format": _driver(data, "type"),
        "data_bus": next(node.get("bus") for node in data.iterfind("target")),
        "machine": "q35" if "q35" in machine else "pc",
    }
    for key, wanted in expected.items():
        tell(f"{guest.name}: {key} {wanted}, copied as {settings[key]}")
        require(settings[key] == wanted, f"{guest.name}: {key} is {wanted}, and {settings[key]} in its copy")
    require(settings["data_cache"] in (None, _driver(data, "cache")), f"data_cache {settings['data_cache']}")


def _driver(disk: ElementTree.Element, key: str) -> str | None:
    return next(node.get(key) for node in disk.iterfind("driver"))
