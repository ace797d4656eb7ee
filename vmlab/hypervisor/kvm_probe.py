"""Whether KVM works here: a kernel has to run under it, and quickly.

The device node proves nothing, nor does KVM_CREATE_VM: some clouds run guests whose KVM takes both and then hangs, or
aborts, on any ordinary kernel. So the image's own kernel is booted without a disk, up to its panic.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
from pathlib import Path

from vmlab.model.errors import HypervisorUnavailable
from vmlab.model.run import Accelerator

EMULATOR = "/usr/bin/qemu-system-x86_64"
DEADLINE = 4.0
"""Seconds. Under working KVM a kernel reaches its panic in well under one; nested KVM is slower."""

_DEVICE = Path("/dev/kvm")
_PROOF = b"Kernel panic - not syncing: VFS"
"""Printed by a kernel that came all the way to looking for its root disk."""

_CPU = {"kvm": "host", "tcg": "max"}


def kernel_runs(kernel: Path, accelerator: Accelerator, deadline: float = DEADLINE) -> bool:
    """Whether `kernel` boots under `accelerator` up to its missing root disk, within `deadline` seconds.

    Raises HypervisorUnavailable when QEMU is missing.
    """
    argv = [EMULATOR, "-machine", "q35", "-accel", accelerator, "-cpu", _CPU[accelerator], "-m", "192"]
    argv += ["-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"]
    argv += ["-kernel", str(kernel), "-append", "console=ttyS0 panic=-1"]
    try:
        ended = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=deadline, check=False)
    except FileNotFoundError as error:
        raise HypervisorUnavailable(f"{EMULATOR} is missing", remedy="apt-get install qemu-system-x86") from error
    except subprocess.TimeoutExpired:
        return False
    return _PROOF in ended.stdout


def usable_accelerator(kernel: Path, cache: Path) -> Accelerator:
    """``kvm`` when `kernel` runs under it here, else ``tcg``.

    The answer is kept in the folder `cache` for this QEMU and kernel, until the host boots again.
    """
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return "tcg"
    memory = cache / "kvm-probe.json"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = f"{boot}/{_version(kernel)}"
    known = {old: answer for old, answer in _read(memory).items() if old.startswith(boot)}
    if key not in known:
        known[key] = kernel_runs(kernel, "kvm")
        _write(memory, known)
    return "kvm" if known[key] else "tcg"


def _version(kernel: Path) -> str:
    """Names this QEMU and this kernel by what they are, without asking either."""
    emulator = Path(EMULATOR).stat()
    digest = hashlib.sha256(kernel.read_bytes()).hexdigest()[:16]
    return f"{emulator.st_size}-{emulator.st_mtime_ns}/{digest}"


def _read(memory: Path) -> dict[str, bool]:
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        return {}
    return {str(key): bool(value) for key, value in known.items()} if isinstance(known, dict) else {}


def _write(memory: Path, known: dict[str, bool]) -> None:
    """Replace the file at once, as another lab may be reading it."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    fresh = memory.with_suffix(f".{secrets.token_hex(8)}")
    fresh.write_text(json.dumps(known))
    fresh.replace(memory)
