"""What this host's QEMU and kernel cannot do of what a guest may ask for. QEMU is asked, without a guest."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vmlab.hypervisor.kvm_probe import EMULATOR
from vmlab.hypervisor.levers.uefi_firmware import uefi_loader
from vmlab.system import kvm_device
from vmlab.system.kernel import io_uring_fault
from vmlab.system.packages import installing

_WITHOUT_GUEST = ("-machine", "none", "-nodefaults", "-display", "none", "-qmp", "stdio")
_ENOUGH = 30.0
_USUAL = "threads"
_NOTHING_SAID = (OSError, ValueError, LookupError, subprocess.SubprocessError)


def lacking_io() -> dict[str, str]:
    """The reason for each value of ``io`` that cannot be had here.

    Nothing where QEMU says nothing that is understood, so that a guest finds out.
    """
    try:
        schema = _said("query-qmp-schema")
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
        machines = {name for one in _said("query-machines") for name in (one["name"], one.get("alias"))}
    except _NOTHING_SAID:
        return found
    return found if "pc" in machines else {**found, "machine pc": "this host's QEMU has no machine type pc"}


def _said(command: str) -> list[dict[str, Any]]:
    """The list that QEMU answers a command with."""
    asked = "".join(json.dumps({"execute": one}) for one in ("qmp_capabilities", command, "quit"))
    argv = [EMULATOR, *_WITHOUT_GUEST]
    done = subprocess.run(argv, input=asked, capture_output=True, text=True, timeout=_ENOUGH, check=True)
    return next(_lists_in(done.stdout))


def _lists_in(said: str) -> Iterator[list[dict[str, Any]]]:
    for line in said.splitlines():
        if isinstance(answer := json.loads(line).get("return"), list):
            yield answer
    raise LookupError("QEMU gave no list")
