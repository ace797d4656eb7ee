"""Whether KVM works here: a kernel has to run under it.

The device node proves nothing, and neither does KVM_CREATE_VM: some clouds run guests whose KVM takes both and then
hangs, or aborts, on any ordinary kernel. So the image's own kernel is booted without a disk, up to its panic. That
takes half a second on most hosts and half a minute on one that is emulated itself, so that no time limit can
distinguish a slow kernel from a hung one. The serial line can: a kernel that makes progress prints something new.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.run import Accelerator
from vmlab.system import kvm_device
from vmlab.system.given_file import new_file
from vmlab.telemetry.setting_files import boot_of
from vmlab.telemetry.source import THE_HOST

EMULATOR = "/usr/bin/qemu-system-x86_64"
PATIENCE = 4.0
"""Seconds without output after which a kernel counts as hung, on a host that is not slow.

A slow host gets _SLOWNESS times the time that its QEMU takes to print its version: 0.03 s here, 0.3 s where it is
emulated.
"""
LIMIT = 120.0
"""Seconds after which a kernel that still boots is given up: guests on such a host would be useless."""
DEADLINE = LIMIT + 60.0
"""Seconds within which `probe_kvm` returns, unless the host's file systems hang."""

_SLOWNESS = 20.0
_MOST_PATIENCE = 30.0
_ASK = 20.0
_MEMORY = "kvm-probe.json"
_ONCE = "/once"
"""Ends the key of an answer that does not last. It is kept for `remembered` alone."""
DEVICE = kvm_device.DEVICE
_PROOF = b"Kernel panic - not syncing: VFS"
"""Printed by a kernel that has booted as far as looking for its root disk."""

_KEPT = 64 * 1024
_LAST_WORDS = 200
_CPU = {"kvm": "host", "tcg": "max"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a kernel runs; where it does not, `why` is the reason in a few words, for anyone.

    A `lasting` answer holds until the host boots again; another one may be different at the next try. `seen` is how
    that kernel or its QEMU ended, in its own words: for `vmlab doctor` and the run's log, as it reads like an error.
    """

    runs: bool
    why: str = ""
    lasting: bool = False
    seen: str = ""

    @classmethod
    def of_kernel(cls, seen: str, *, lasting: bool) -> Answer:
        """That of a kernel which was tried, and did not boot if anything wrong was `seen`."""
        return cls(not seen, kvm_device.no_boot_words() if seen else "", lasting, seen)

    @property
    def sentence(self) -> str:
        """The line that `vmlab doctor` and a run both show."""
        return "guests run under KVM" if self.runs else f"guests are emulated (TCG): {self.why}"

    @property
    def accelerator(self) -> Accelerator:
        """What guests run under, when the answer is about KVM."""
        return "kvm" if self.runs else "tcg"


def kernel_runs(kernel: Path, accelerator: Accelerator, patience: float | None = None, limit: float = LIMIT) -> Answer:
    """Whether `kernel` boots under `accelerator` up to its missing root disk.

    It is given up when it prints nothing new for `patience` seconds (measured on this host if None), and after `limit`
    seconds. Raises OSError or SubprocessError when QEMU cannot be started.
    """
    argv = [EMULATOR, "-machine", "q35,graphics=off", "-accel", accelerator, "-cpu", _CPU[accelerator], "-m", "192"]
    argv += ["-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"]
    # Firmware and kernel print from the start, so that no part of the boot is silent.
    argv += ["-kernel", str(kernel), "-append", "earlyprintk=ttyS0 console=ttyS0 panic=-1"]
    patience = _patience() if patience is None else patience
    program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with program:
        try:
            return _heard(program, patience, limit)
        finally:
            program.kill()


def _heard(program: subprocess.Popen[bytes], patience: float, limit: float) -> Answer:
    """What the program's standard output, which is the serial line, shows."""
    assert program.stdout is not None
    assert program.stderr is not None
    heard = {program.stdout.fileno(): b"", program.stderr.fileno(): b""}
    late = Answer.of_kernel(f"a kernel was still booting after {limit:.0f} s", lasting=False)
    end = time.monotonic() + limit
    with selectors.DefaultSelector() as ears:
        for number in heard:
            ears.register(number, selectors.EVENT_READ)
        while ears.get_map():
            left = end - time.monotonic()
            if not (ready := ears.select(max(0.0, min(patience, left)))):
                silent = Answer.of_kernel(f"a kernel printed nothing for {patience:.0f} s", lasting=True)
                return silent if patience < left else late
            for key, _ in ready:
                if not (chunk := os.read(key.fd, _KEPT)):
                    ears.unregister(key.fd)
                heard[key.fd] = (heard[key.fd] + chunk)[-_KEPT:]
            if _PROOF in heard[program.stdout.fileno()]:
                return Answer(True, lasting=True)
            if time.monotonic() > end:
                return late
    lines = heard[program.stderr.fileno()].decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    ended = f": {last[-_LAST_WORDS:]}" if last else f" with status {_status(program)}"
    return Answer.of_kernel(f"QEMU ended{ended}", lasting=False)


def _status(program: subprocess.Popen[bytes]) -> int:
    """The exit status of a program that closed its output, which it does by ending."""
    try:
        return program.wait(1.0)
    except subprocess.TimeoutExpired:
        return 0


def _patience() -> float:
    """How long a kernel may be silent on this host, in seconds."""
    began = time.monotonic()
    subprocess.run([EMULATOR, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK, check=False)
    return min(max(PATIENCE, _SLOWNESS * (time.monotonic() - began)), _MOST_PATIENCE)


def probe_kvm(kernel: Path, cache: Path) -> Answer:
    """Whether `kernel` runs under KVM here; any fault of KVM or QEMU is a negative answer with its reason.

    The answer is kept in the folder `cache` for this QEMU, until the host boots again. A lasting one is not asked for
    again with the same kernel.
    """
    try:
        return without_device() or _probed(kernel, cache)
    except (OSError, subprocess.SubprocessError) as error:
        return Answer(False, f"it could not be probed: {error}")


def without_device() -> Answer | None:
    """The answer where KVM's device cannot be used at all; None where only a probe can tell."""
    if not DEVICE.exists():
        return Answer(False, f"there is no {DEVICE}")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return Answer(False, f"{DEVICE} is there, but this user may not open it")
    return None


def remembered(cache: Path) -> Answer | None:
    """The newest answer for the QEMU that is installed, since the host booted; None where there is none."""
    try:
        known = [*_known(cache / _MEMORY, f"{boot_of(THE_HOST)}/{_emulator()}/").items()]
    except OSError:
        return None
    return Answer.of_kernel(known[-1][1], lasting=not known[-1][0].endswith(_ONCE)) if known else None


def _probed(kernel: Path, cache: Path) -> Answer:
    memory = cache / _MEMORY
    here = f"{boot_of(THE_HOST)}/{_emulator()}"
    key = f"{here}/{hashlib.sha256(kernel.read_bytes()).hexdigest()[:16]}"
    known = _known(memory, boot_of(THE_HOST))
    if key in known:
        return Answer.of_kernel(known[key], lasting=True)
    answer = kernel_runs(kernel, "kvm")
    # An earlier answer that held only once is gone, so that this one is the newest, and the last of them.
    kept = {name: seen for name, seen in known.items() if not name.endswith(_ONCE)}
    with contextlib.suppress(OSError):
        _write(memory, {**kept, key if answer.lasting else here + _ONCE: answer.seen})
    return answer


def _emulator() -> str:
    """Identifies the installed QEMU without starting it."""
    emulator = Path(EMULATOR).stat()
    return f"{emulator.st_size}-{emulator.st_mtime_ns}"


def _known(memory: Path, beginning: str) -> dict[str, str]:
    """The stored answers under keys with that `beginning`: what was seen to go wrong, or the empty string."""
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {key: why for key, why in known.items() if key.startswith(beginning) and isinstance(why, str)}


def _write(memory: Path, known: dict[str, str]) -> None:
    """Replace the file at once, as another lab may be reading it."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    with new_file(memory) as file:
        file.write(json.dumps(known).encode())
