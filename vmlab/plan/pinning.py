"""Which CPUs the guests' virtual CPUs are pinned to, where a scenario says how and leaves to the host where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vmlab.model.scenarios.cpu_levers import PIN_KEYS, WAYS, pin_conflict, pin_sets
from vmlab.model.scenarios.guest import GuestResources
from vmlab.plan.terms import GuestPlan
from vmlab.system.host_size import Cores
from vmlab.system.mounts import cpu_list, read_cpu_list

_NOT_PACKED = "packed is as spread where no core has two hardware threads, as on this host"


def pinned(guests: Sequence[GuestPlan], cores: Cores | None) -> tuple[GuestPlan, ...]:
    """The guests of a cell with a CPU for each virtual CPU, in place of ``spread`` and ``packed``.

    They share CPUs only where there are more of them than CPUs. Where `cores` are not known, or cannot be packed, the
    words stay.
    """
    used = Counter(cpu for guest in guests for cpu in _cpus_of(guest.resources.pin))
    return tuple(_placed(guest, cores, used) for guest in guests)


def _placed(guest: GuestPlan, cores: Cores | None, used: Counter[int]) -> GuestPlan:
    given = guest.resources
    if not cores or given.pin not in WAYS or lack_for_pin(given.pin, cores):
        return guest
    packed = given.pin == "packed"
    chosen: list[int] = []
    while len(chosen) < given.vcpus:
        core = min(cores, key=lambda one: _load(one, used, wide=packed))
        group = sorted(core, key=lambda cpu: (used[cpu], cpu))
        taken = group[: given.vcpus - len(chosen)] if packed else group[:1]
        used.update(taken)
        chosen += taken
    return replace(guest, resources=given.model_copy(update={"pin": ";".join(map(str, chosen))}))


def _load(core: tuple[int, ...], used: Counter[int], *, wide: bool) -> tuple[float, int, int]:
    """Sorts cores: the least used first, then where `wide` those of more threads, and of equals the last.

    The first CPU serves most interrupts of the host.
    """
    count = sum(used[cpu] for cpu in core)
    return count / len(core) if wide else count, -len(core) if wide else 0, -max(core)


def lack_for_pin(pin: object, cores: Cores) -> str | None:
    """Why the host, or the ordered one, cannot have this value of ``pin`` or ``emulator_pin``; None where it can.

    None also for values that are reported where they are checked.
    """
    if pin == "packed":
        return None if any(len(core) > 1 for core in cores) else _NOT_PACKED
    having = {cpu for core in cores for cpu in core}
    try:
        missing = sorted({*_cpus_of(str(pin))} - having)
    except ValueError:
        return None
    if not missing:
        return None
    return f"there is no CPU {missing[0]} here; there are {cpu_list(having)}"


def pin_fault(given: GuestResources, cores: Cores) -> str | None:
    """Why a guest cannot be pinned here as it is planned, beginning with the key; None where it can."""
    for key in PIN_KEYS:
        pin = getattr(given, key)
        if (lack := lack_for_pin(pin, cores)) is not None:
            return f"{key}: {pin}, and {lack}"
    # As many virtual CPUs as the host has are known only now.
    return None if pin_conflict(given) is None else f"pin: {given.pin}, and {given.vcpus} virtual CPUs here"


def _cpus_of(pin: str) -> Iterator[int]:
    for one in pin_sets(pin):
        yield from read_cpu_list(one)
