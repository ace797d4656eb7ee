"""What this host's QEMU, libvirt, kernel and firmware cannot do of what a guest may ask for. They are asked without a
guest; where they say nothing that is understood, the guest's start finds out.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from lxml import etree

from vmlab.hypervisor.kvm_probe import EMULATOR
from vmlab.model.run import Accelerator
from vmlab.model.scenarios.cpu_levers import HOST_CPU, LIKE_HOST_CPU, MOST_CPU, read_cpu
from vmlab.system import kvm_device
from vmlab.system.kernel import io_uring_fault
from vmlab.system.packages import installing

_ENOUGH = 30.0
_USUAL = "threads"
_NOTHING_SAID = (OSError, etree.LxmlError, ValueError, LookupError, TypeError, subprocess.SubprocessError)
_ACCELERATORS: Mapping[Accelerator, str] = {"kvm": "KVM", "tcg": "emulation (TCG)"}
FOLDERS = (Path("/etc/qemu/firmware"), Path("/usr/share/qemu/firmware"))
"""The host's own before those of packages; of two files of one name the first one counts."""
_MOST_BYTES = 2**16
_SECURE = {"secure-boot", "requires-smm", "enrolled-keys"}
_CPU_FEATURES = Path("/usr/share/libvirt/cpu_map/x86_features.xml")
"""libvirt's list, which has QEMU's name of a feature where that is another."""
_BOARDS = ("pc-i440fx-", "pc-q35-")


def lacking_io() -> dict[str, str]:
    """The reason for each value of ``io`` that cannot be had here."""
    try:
        (schema,) = _said("none", {"execute": "query-qmp-schema"})
    except _NOTHING_SAID:
        return {}
    known = next((one["values"] for one in schema if {_USUAL, "native"} <= set(one.get("values", ()))), None)
    lacking = {} if known is None else {one: f"this host's QEMU has no io={one}" for one in ("native", "io_uring")}
    found = {name: why for name, why in lacking.items() if name not in (known or ())}
    if "io_uring" not in found and (fault := io_uring_fault()) is not None:
        found["io_uring"] = f"this host's kernel does no io_uring: {fault}"
    return found


def lacking_vhost() -> dict[str, str]:
    """The reason where the host's kernel cannot move guests' packets."""
    if not kvm_device.may_work():
        return {"vhost": "libvirt gives vhost to guests under KVM alone, which this host does not have"}
    device = Path("/dev/vhost-net")
    return {} if device.exists() else {"vhost": f"{device} is missing: modprobe vhost_net"}


def lacking_machine() -> dict[str, str]:
    """The reason for each value of ``machine`` and ``firmware`` that cannot be had here, as ``firmware uefi``."""
    found = {} if uefi_loader() else {"firmware uefi": f"this host has no UEFI firmware for QEMU: {installing('ovmf')}"}
    try:
        (known,) = _said("none", {"execute": "query-machines"})
        machines = {name for one in known for name in (one["name"], one.get("alias"))}
    except _NOTHING_SAID:
        return found
    lacks = machines and "pc" not in machines
    return {**found, "machine pc": "this host's QEMU has no machine type pc"} if lacks else found


def lacking_cpu(text: str, accelerator: Accelerator) -> str | None:
    """Why no guest can have this value of ``cpu`` here; None where it can, or nobody says so."""
    words = _ACCELERATORS[accelerator]
    try:
        asked = read_cpu(text)
        if asked.model == HOST_CPU and accelerator != "kvm":
            return "the host's own processor needs KVM"
        models, features = _offers(accelerator)
        of_libvirt = _features_of_libvirt()
    except _NOTHING_SAID:
        return None
    for name in (*asked.added, *asked.removed):
        if (known_as := of_libvirt.get(name, name)) != name:
            return f"libvirt's name of the CPU feature {name} is {known_as}"
        if name not in features or name not in of_libvirt:
            return f"this host's QEMU and libvirt do not both know a CPU feature {name}"
    if never := [name for name in asked.added if not features[name]]:
        return f"{words} has no CPU feature {', '.join(never)} here"
    if asked.model in (HOST_CPU, MOST_CPU, LIKE_HOST_CPU):
        return None
    if asked.model not in models or asked.model not in _known_to_libvirt():
        return f"this host's QEMU and libvirt do not both know a CPU model {asked.model}"
    unavailable = [of_libvirt.get(name, name) for name in models[asked.model]]
    if lacking := [name for name in unavailable if name not in asked.removed]:
        without = " ".join([text, *(f"-{name}" for name in lacking)])
        return f"{words} cannot give it {', '.join(lacking)}; without these it is {without}"
    return None


def lacking_long_mode(text: str, accelerator: Accelerator) -> str | None:
    """Why vmlab's own image does not start with this value of ``cpu``; None where it does, or nobody says so."""
    asked = read_cpu(text)
    try:
        has = "lm" in asked.added or ("lm" not in asked.removed and _has_long_mode(asked.model, accelerator))
    except _NOTHING_SAID:
        return None
    return None if has else "vmlab's own image has 64 bits, which this processor has not (lm)"


@cache
def _has_long_mode(model: str, accelerator: Accelerator) -> bool:
    if model in (HOST_CPU, MOST_CPU, LIKE_HOST_CPU):
        return True
    full = {"type": "full", "model": {"name": model}}
    (said,) = _said(f"none,accel={accelerator}", {"execute": "query-cpu-model-expansion", "arguments": full})
    return said["model"]["props"]["lm"] is not False


@cache
def _offers(accelerator: Accelerator) -> tuple[dict[str, list[str]], dict[str, bool]]:
    """By model the features that it cannot have here, and by feature whether the accelerator can give it."""
    every = HOST_CPU if accelerator == "kvm" else MOST_CPU
    most = {"type": "full", "model": {"name": every}}
    models, expanded = _said(
        f"none,accel={accelerator}",
        {"execute": "query-cpu-definitions"},
        {"execute": "query-cpu-model-expansion", "arguments": most},
    )
    props = expanded["model"]["props"]
    return (
        {one["name"]: list(one.get("unavailable-features", ())) for one in models},
        {name: value for name, value in props.items() if isinstance(value, bool)},
    )


def _said(machine: str, *asked: dict[str, Any]) -> list[Any]:
    """What QEMU answers to these commands, in order. Raises what `_NOTHING_SAID` has."""
    argv = [EMULATOR, "-machine", machine, "-nodefaults", "-display", "none", "-qmp", "stdio"]
    requests = "".join(json.dumps(one) for one in ({"execute": "qmp_capabilities"}, *asked, {"execute": "quit"}))
    done = subprocess.run(argv, input=requests, capture_output=True, text=True, timeout=_ENOUGH, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    returned = [one["return"] for one in answers if "return" in one][1 : 1 + len(asked)]
    if len(returned) < len(asked):
        raise LookupError("QEMU gave no answer")
    return returned


@cache
def _features_of_libvirt() -> dict[str, str]:
    """libvirt's names of features, by themselves and by QEMU's: a domain has libvirt's alone."""
    found: dict[str, str] = {}
    for feature in etree.parse(_CPU_FEATURES).iterfind("feature"):
        for one in (feature, *feature.iterfind("alias[@source='qemu']")):
            found[str(one.get("name"))] = str(feature.get("name"))
    return found


@cache
def _known_to_libvirt() -> frozenset[str]:
    """The models by name. libvirt's own driver for tests answers with the same list, and starts nothing."""
    import libvirt

    connection = libvirt.open("test:///default")
    try:
        return frozenset(connection.getCPUModelNames("x86_64"))
    finally:
        connection.close()


def uefi_loader() -> Path | None:
    """The flash image of the first firmware that is for both boards and does without Secure Boot; None without any.

    By the files that libvirt reads too (docs/interop/firmware.json).
    """
    files = {file.name: file for folder in reversed(FOLDERS) for file in folder.glob("*.json")}
    for _, file in sorted(files.items()):
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            if (found := _flash_of(file)) is not None:
                return found
    return None


def _flash_of(file: Path) -> Path | None:
    with file.open("rb") as opened:
        described: dict[str, Any] = json.loads(opened.read(_MOST_BYTES))
    boards = [m for one in described["targets"] if one["architecture"] == "x86_64" for m in one["machines"]]
    mapping = described["mapping"]
    fits = "uefi" in described["interface-types"] and mapping["device"] == "flash"
    fits = fits and mapping.get("mode") != "combined" and mapping["executable"].get("format") == "raw"
    fits = fits and all(any(one.startswith(board) for one in boards) for board in _BOARDS)
    if not fits or not _SECURE.isdisjoint(described["features"]):
        return None
    flash = Path(mapping["executable"]["filename"])
    return flash if flash.is_file() else None
