"""What this host's QEMU and kernel cannot do of what a guest may ask for. QEMU is asked, without a guest."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vmlab.hypervisor.kvm_probe import EMULATOR
from vmlab.system import kvm_device
from vmlab.system.kernel import io_uring_fault

_ASK = "".join(json.dumps({"execute": one}) for one in ("qmp_capabilities", "query-qmp-schema", "quit"))
_WITHOUT_GUEST = ("-machine", "none", "-nodefaults", "-display", "none", "-qmp", "stdio")
_ENOUGH = 30.0
_USUAL = "threads"


def lacking_io() -> dict[str, str]:
    """The reason for each value of ``io`` that cannot be had here.

    Nothing where QEMU says nothing that is understood, so that a guest finds out.
    """
    try:
        schema = _schema()
    except (OSError, ValueError, LookupError, subprocess.SubprocessError):
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


def _schema() -> list[dict[str, Any]]:
    argv = [EMULATOR, *_WITHOUT_GUEST]
    done = subprocess.run(argv, input=_ASK, capture_output=True, text=True, timeout=_ENOUGH, check=True)
    return next(_lists_in(done.stdout))


def _lists_in(said: str) -> Iterator[list[dict[str, Any]]]:
    for line in said.splitlines():
        if isinstance(answer := json.loads(line).get("return"), list):
            yield answer
    raise LookupError("QEMU gave no schema")
