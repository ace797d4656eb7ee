"""What is tried in the host, in order: what changes nothing first, what may destroy that host last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. `name` is what `tests.host.inside` knows it by, `deadline` is in seconds.

    After a destructive check that failed, the host is booted anew for the next one.
    """

    name: str
    title: str
    deadline: float
    destructive: bool = False


_MINUTE = 60.0

CHECKS = (
    Check("doctor", "doctor finds all that a run needs, with cgroup v2", 2 * _MINUTE),
    Check("cold", "a guest that is booted runs under KVM", 10 * _MINUTE),
    Check("frozen", "a guest that is restored runs under KVM, and doctor tells of it", 12 * _MINUTE),
    Check("shares", "CPU shares 100 and 50 become weights of cgroup v2, and processor time at 2 to 1", 20 * _MINUTE),
    Check("volumes", "a data disk in a volume group is proved, and gone after a run and after kill -9", 40 * _MINUTE),
    Check("settings", "scheduler, swappiness, dirty pages are set, and back after a run and kill -9", 40 * _MINUTE),
    Check("tile", "a tile of four guests, its cache mode proved under none and writeback", 30 * _MINUTE),
    Check("taken-away", "selftest names what was taken away: root, libvirt, KVM, cgroups, FUSE", 5 * _MINUTE),
    Check("selftest", "selftest: every trial works, under KVM", 25 * _MINUTE),
    Check(
        "experiments", "make experiments HOST=kvm answers claims, and knows that this host is emulated", 45 * _MINUTE
    ),
    Check("console", "the console shows the host under tmux", 5 * _MINUTE),
    Check("own-guests", "the host's own guests: who hurts, cache modes, a recording, advice; read only", 50 * _MINUTE),
    Check("copied-guests", "scenario from: a copy of a guest of the host's own has its settings", 60 * _MINUTE),
    Check(
        "traced-guests", "record --blktrace tells the order of a guest's requests, and leaves no trace", 40 * _MINUTE
    ),
    Check("beside-embedded", "a lab beside them, and kill -9 of its runner: nothing is left", 60 * _MINUTE),
    Check("beside-system", "the same with qemu:///system, under AppArmor", 60 * _MINUTE),
    Check("contract-system", "the hypervisor's contract tests with qemu:///system, beside them", 45 * _MINUTE),
    Check("own-guests-end", "these guests end as any other", 5 * _MINUTE),
    Check(
        "untouched",
        "nothing is left to clean; libvirtd, its network, its guest and machined are as they were",
        3 * _MINUTE,
    ),
    Check("kill-launcher", "kill -9 of the launcher with on: host mounted", 20 * _MINUTE, destructive=True),
    Check("kill-init", "kill -9 of the init with on: host mounted", 20 * _MINUTE, destructive=True),
    Check("kill-qemu", "kill -9 of a QEMU with on: host mounted", 20 * _MINUTE, destructive=True),
    Check("kill-runner", "kill -9 of the runner with on: host mounted", 20 * _MINUTE, destructive=True),
    Check(
        "untouched", "still nothing is left to clean, and all others are as they were", 3 * _MINUTE, destructive=True
    ),
)
