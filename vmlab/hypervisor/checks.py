"""What a host needs to run a lab, and the command that installs or repairs what is missing."""

from __future__ import annotations

import math
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from vmlab.hypervisor import kvm_probe
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.libvirt.libvirt_root import PACKAGES, missing, words_for
from vmlab.model.errors import RefusedError, in_one_line
from vmlab.model.places import cache_folder, remedy_for, runs_folder, state_folder
from vmlab.model.scenarios.host_settings import HOST_PARTS, HOST_SETTINGS
from vmlab.system import kvm_device
from vmlab.system.entry_points import broken, other_packages
from vmlab.system.file_system import nearest_folder, supports_direct, try_out
from vmlab.system.packages import extra_command, extra_packages, install_command, installing
from vmlab.system.rights import QEMU_BYTES, Needed, as_root, in_container, missing_capabilities, too_low
from vmlab.telemetry.cpu_speed import LABEL, NO_TRACE
from vmlab.telemetry.domains.neighbour_readings import neighbours
from vmlab.telemetry.domains.neighbours import described
from vmlab.telemetry.host.host_figures import figure_sources
from vmlab.telemetry.host.power import Power
from vmlab.telemetry.place import ON_A_DISK, refuses_overlay
from vmlab.telemetry.setting_files import CANNOT_WRITE, unsettable
from vmlab.telemetry.source import THE_HOST, Roots
from vmlab.telemetry.speed_trace import speed_now
from vmlab.workloads.registry import kinds

_NOT_ROOT = "this user is not root: runs need it for namespaces and bridges, and other checks here may differ for root"
_ENOUGH_FREE = 10 * 2**30
"""An image and its build take 5 GiB; the rest is for what the guests of a few tiles write."""
_SPEED_SECONDS = 1.0
_USUAL_DISK, _USUAL_MEMORY = 8 * 2**30, 512 * 2**20

_DRIVER = "libvirt/connection-driver/libvirt_driver_qemu.so"
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "mkfs.ext4": "e2fsprogs",
    "gcc": "gcc",
}
"""The programs that a lab needs, each with Debian's package for it."""
_EXTRAS = {
    "lab": ("libvirt", "libvirt-python", "runs need it"),
    "disk": ("pyfuse3", "pyfuse3", "the emulated disk needs it"),
    "report": ("matplotlib", "matplotlib", "reports as HTML need it"),
    "serve": ("textual_serve", "textual-serve", "the console in a browser needs it"),
    "fleet": ("distributed", "distributed", "runs on several hosts need it"),
    "frames": ("polars", "polars", "frames of the Python API need it"),
    "parquet": ("pyarrow", "pyarrow", "exports as Parquet need it"),
}
"""By the extra of vmlab that brings it: a module, its Python package, and who needs it."""
_NEEDED_EXTRA = "lab"
_DEVICES = (("/dev/net/tun", "tun"), ("/dev/loop-control", "loop"))
"""The device nodes that a lab needs, each with the kernel's module for it."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `required` is False for what a lab can run without; `remedy` is what a user can do, a
    command where there is one.

    To repair it, `packages` (Debian's names) are installed, `command` is run, and the `extra` of vmlab is installed, in
    this order. A lab can run when every required check is `ok`.
    """

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    required: bool = True
    packages: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    extra: str = ""


def repairs(found: Sequence[Check]) -> list[tuple[str, ...]]:
    """The commands that repair what is not `ok`, in order; through sudo where this user is not root.

    What no command repairs is left out.
    """
    wrong = [check for check in found if not check.ok]
    packages = dict.fromkeys(name for check in wrong for name in check.packages)
    of_host = [check.command for check in wrong if check.command]
    if packages and (install := install_command(*packages, unasked=True)):
        fresh = [("apt-get", "update")] if install[0] == "apt-get" else []
        of_host = [*fresh, install, *of_host]
    sudo = () if os.geteuid() == 0 else ("sudo",)
    extras = [check.extra for check in wrong if check.extra]
    return [*((*sudo, *one) for one in of_host), *([extra_command(*extras)] if extras else [])]


def _installed(name: str, ok: bool, detail: str, *packages: str, required: bool = True) -> Check:
    return Check(name, ok, detail, installing(*packages), required, packages)


def _switched(name: str, ok: bool, detail: str, *command: str) -> Check:
    return Check(name, ok, detail, shlex.join(command), command=command)


def checks() -> list[Check]:
    """Everything that a lab needs, in the order in which a user would repair it. Starts nothing but the speed
    probe, for a second, and changes nothing."""
    return list(_checks())


def _checks() -> Iterator[Check]:
    yield _root()
    yield _libvirt_driver()
    for program, package in PROGRAMS.items():
        path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        yield _installed(program, path is not None, path or "not installed", package)
    yield from _extras()
    yield from _kernel_features()
    yield _cgroup()
    yield _limits()
    yield from _locks()
    yield _direct()
    yield _free_space("images", cache_folder())
    yield _free_space("runs", state_folder())
    yield _kvm()
    yield _ksm()
    yield _hosts_libvirt()
    yield from _slow_starts()
    yield _rapl()
    yield _speed()
    yield _neighbours()
    yield _guests_on_host()
    yield from _host_settings()
    yield from _plugins()


def _plugins() -> Iterator[Check]:
    """What other packages add; nothing where none does."""
    if not (packages := other_packages()):
        return
    # What is broken is known once it was loaded.
    list(kinds())
    figure_sources()
    wrong = [one.line for one in broken()]
    added = ", ".join(f"{name} {version}" for name, version in packages.items())
    yield Check("plugins", not wrong, "; ".join(wrong) or added, "update or remove the package", required=False)


def _root() -> Check:
    if os.geteuid() != 0:
        return Check("root", False, _NOT_ROOT, as_root())
    if missing := missing_capabilities(restoring=True):
        remedy = f"start the container with --cap-add {','.join(name.removeprefix('CAP_') for name in missing)}"
        return Check("root", False, f"root without {', '.join(missing)}", remedy)
    return Check("root", True, "running as root", as_root())


def _libvirt_driver() -> Check:
    # Debian's place, with the architecture in it, and that of distributions with lib64.
    patterns = (f"lib/*/{_DRIVER}", f"lib*/{_DRIVER}")
    found = next((path for pattern in patterns for path in Path("/usr").glob(pattern)), None)
    detail = str(found) if found else f"{Path(_DRIVER).name} is not installed"
    return _installed("libvirt QEMU driver", found is not None, detail, "libvirt-daemon-driver-qemu")


def _extras() -> Iterator[Check]:
    """The Python packages that are installed only where they are wanted."""
    for extra, (module, package, who) in _EXTRAS.items():
        there = util.find_spec(module) is not None
        compilers = extra_packages(extra)
        remedy = " && ".join([*([installing(*compilers)] if compilers else []), shlex.join(extra_command(extra))])
        detail = "installed" if there else f"not installed: {who}"
        yield Check(package, there, detail, remedy, extra == _NEEDED_EXTRA, compilers, extra=extra)


def _kernel_features() -> Iterator[Check]:
    for name in ("net", "mnt", "pid"):
        there = Path(f"/proc/self/ns/{name}").exists()
        allowed = _limit_of(name) > 0
        detail = "allowed" if there and allowed else "switched off"
        yield _switched(f"{name} namespaces", there and allowed, detail, "sysctl", f"user.max_{name}_namespaces=1000")
    for device, module in _DEVICES:
        there = Path(device).exists()
        if there or not in_container():
            yield _switched(device, there, "there" if there else "missing", "modprobe", module)
        else:
            yield Check(device, False, "missing in this container", f"start the container with --device {device}")


def _limit_of(namespace: str) -> int:
    limit = Path(f"/proc/sys/user/max_{namespace}_namespaces")
    return int(limit.read_text()) if limit.exists() else 1


def _cgroup() -> Check:
    controllers = cgroups.available_controllers(cgroups.hierarchies())
    found = "cpu" in controllers
    detail = f"controllers: {', '.join(controllers)}" if found else "no cpu controller: CPU shares cannot be set"
    return Check("cgroups", found, detail, "mount -t cgroup2 none /sys/fs/cgroup", required=False)


def _limits() -> Check:
    """Whether a run of one guest of the usual size would be refused; `vmlab plan` knows what a scenario needs."""
    found = list(too_low(Needed(_USUAL_DISK, _USUAL_MEMORY + QEMU_BYTES, 1)))
    detail = "; ".join(line for line, _ in found) or "high enough for a guest of the usual size"
    return Check("limits", not found, detail, " && ".join(remedy for _, remedy in found) or "ulimit -n 4096")


def _locks() -> Iterator[Check]:
    """Without locks nothing tells whether a run or an image is in use."""
    for what, folder in (("images", cache_folder()), ("runs", state_folder())):
        place = nearest_folder(folder)
        try:
            try_out(place)
        except (RefusedError, OSError) as error:
            yield Check(f"locks for {what}", False, in_one_line(error).split(" (set ")[0], remedy_for(folder))
        else:
            yield Check(f"locks for {what}", True, f"{place} has them", remedy_for(folder))


def _direct() -> Check:
    folder = nearest_folder(state_folder())
    lack = f"{folder} does not take it: cache modes none and directsync are refused"
    try:
        takes = supports_direct(folder)
    except OSError as error:
        takes, lack = False, str(error)
    return Check("O_DIRECT", takes, f"{folder} takes it" if takes else lack, ON_A_DISK)


def _guests_on_host() -> Check:
    """What guests with `on: host` change of their image lies in an overlay, beside the runs."""
    folder = nearest_folder(runs_folder())
    kind = refuses_overlay(folder, THE_HOST)
    lack = f"{folder} is on {kind}, which takes no overlay: no guest can have on: host"
    detail = f"{folder} takes their overlay" if kind is None else lack
    return Check("guests on the host", kind is None, detail, ON_A_DISK, required=False)


def _free_space(what: str, folder: Path) -> Check:
    place = nearest_folder(folder)
    free = shutil.disk_usage(place).free
    return Check(
        f"space for {what}",
        free >= _ENOUGH_FREE,
        f"{free / 2**30:.1f} GiB free in {place}",
        "vmlab image rm or a larger disk",
    )


def _kvm() -> Check:
    """The line that a run will show, and how the probe ended: that of the last one since the host booted, if any."""
    unusable = kvm_probe.without_device()
    if unusable is not None:
        remedy = as_root() if kvm_probe.DEVICE.exists() else "modprobe kvm_intel or kvm_amd"
        return Check("KVM", False, unusable.sentence, remedy, required=False)
    answer = kvm_probe.remembered(cache_folder())
    if answer is None:
        odd = kvm_device.for_its_kernels()
        detail = f"{odd or f'{kvm_probe.DEVICE} opens'}; the next run tries whether a kernel boots under it"
        return Check("KVM", odd is None, detail, required=False)
    detail = f"{answer.sentence}; {answer.seen}" if answer.seen else answer.sentence
    return Check("KVM", answer.runs, detail, required=False)


def _hosts_libvirt() -> Check:
    """For labs in the host's own libvirt, which few hosts are to have."""
    lacking = missing()
    detail = "labs may be in this host's own libvirt" if lacking is None else words_for(lacking)
    package = PACKAGES[lacking or "libvirtd"]
    return Check("qemu:///system", lacking is None, detail, installing(package), required=False)


def _slow_starts() -> Iterator[Check]:
    """Said only where a lab may be in the host's own libvirt; what mends it may be wrong for other programs."""
    if missing() is not None or kvm_probe.without_device() is not None:
        return
    answer = kvm_probe.remembered(cache_folder())
    if not (kvm_device.may_work() if answer is None else answer.runs):
        yield Check(
            "starts in qemu:///system",
            False,
            kvm_device.slow_start_words(),
            f"{kvm_device.removal_command()}, where nothing else uses it",
            required=False,
        )


def _rapl() -> Check:
    """Whether the CPUs' power can be sampled: most virtual machines cannot, so a run says nothing about it."""
    try:
        packages = len(Power(Roots()).names) - 1
    except (OSError, ValueError):
        return Check("RAPL", False, "this host has no counters of its CPUs' power: it is not measured", required=False)
    return Check("RAPL", True, f"power of {packages} CPU package{'s' * (packages > 1)}", required=False)


def _speed() -> Check:
    """How steady the CPUs' speed is; a speed that holds for all of the second is not seen."""
    try:
        mean, low, high = speed_now(_SPEED_SECONDS)
    except OSError as error:
        return _installed(LABEL, False, f"{NO_TRACE}: {error}", "gcc", required=False)
    if not all(map(math.isfinite, (mean, low, high))):
        return Check(LABEL, False, f"{NO_TRACE}: no CPU has told its speed", required=False)
    average = f"{mean:.0f} % of the best speed on average over {_SPEED_SECONDS:g} s"
    return Check(LABEL, True, f"{average}, by CPU {low:.0f} to {high:.0f} %", required=False)


def _ksm() -> Check:
    switch = Path("/sys/kernel/mm/ksm/run")
    if not switch.exists():
        return Check("KSM", False, "the kernel has none", required=False)
    return Check("KSM", True, "on" if switch.read_text().strip() == "1" else "off", required=False)


def _neighbours() -> Check:
    found = neighbours(THE_HOST.host_proc)
    return Check("other guests", True, described(found) if found else "none runs on this host", required=False)


def _host_settings() -> Iterator[Check]:
    """What scenarios may change of the host while they run."""
    why = unsettable(nearest_folder(runs_folder()))
    for name in (*HOST_SETTINGS, *HOST_PARTS):
        detail = why.get(name, "scenarios can change it" if name in HOST_SETTINGS else "scenarios can limit it")
        remedy = as_root() if detail.endswith(CANNOT_WRITE) and os.geteuid() != 0 else None
        yield Check(f"host.{name}", name not in why, detail, remedy, required=False)
