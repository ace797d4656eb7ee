"""systemd in a guest: what it has booted into, and the units of its roles, which are started here; and
its data disk: a file system is made on it, mounted, and checked against what was asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vmlab.guests.channel import payload_file
from vmlab.model.errors import GuestError
from vmlab.model.names import DATA_FOLDER, DATA_SERIAL
from vmlab.model.quantities import LARGEST_BYTES
from vmlab.model.roles import ROLES
from vmlab.model.run import has_write_cache
from vmlab.model.scenarios.disk_levers import DATA_TARGETS, TRIMMED_BYTES, DataBus
from vmlab.model.scenarios.guest import Boot, GuestResources
from vmlab.workloads.shell import Shell

_SETTLED_SECONDS = 240.0
_WHOLE = ("running", "degraded")
_EXPECTED: dict[Boot, tuple[str, tuple[str, ...]]] = {
    "lab": ("vmlab.target", _WHOLE),
    "normal": ("multi-user.target", _WHOLE),
    "rescue": ("rescue.target", ("maintenance",)),
}
"""The target of each way to boot, and the states that systemd may be in then; see systemctl(1), is-system-running."""

_LOOK = """\
export LC_ALL=C
systemctl is-system-running || :
exec systemctl list-units --plain --no-legend --no-pager --type=service,socket,target,timer --state=active,failed
"""
"""The words of a line are the unit, how it was loaded, its state, the state of its kind, and its description."""
LOOKS_BY = ("sh", "systemctl")
"""The programs that it runs."""

_WORDS_AT_LEAST = 4
_MOST_STATE = 40
_MOST_UNITS = 2**17
"""Letters of all units' names; some hundred units of a guest have 2**13."""


@dataclass(frozen=True, slots=True)
class BootState:
    """`state` is systemd's, `units` are those that are active (services, sockets, targets, timers).

    `target` is the one of the known ways to boot that is active, empty where none is. (`systemctl get-default` tells
    what was to be reached, not what was, and is one program more to start.)
    """

    mode: Boot
    state: str
    target: str
    units: tuple[str, ...]
    failed: tuple[str, ...]

    def fault(self) -> str | None:
        """Why this is not the state that was asked for; None where it is."""
        target, states = _EXPECTED[self.mode]
        if self.target != target:
            return f"it was to boot as {self.mode}, into {target}, and is in {self.target or 'an unknown target'}"
        if self.state not in states:
            return f"it was to boot as {self.mode}, and systemd says {self.state or 'nothing'}"
        return None

    def to_json(self) -> dict[str, Any]:
        """For the cell's document."""
        names = {"units": list(self.units), "failed": list(self.failed)}
        return {"mode": self.mode, "state": self.state, "target": self.target, **names}


async def look_at_boot(shell: Shell, mode: Boot) -> BootState:
    """The present state of a guest that should have booted in this `mode`. Raises GuestError where that is unknown."""
    state, _, listed = (await shell.run(["sh", "-c", _LOOK])).stdout.partition("\n")
    units = [(words[0], words[2]) for words in map(str.split, listed.splitlines()) if len(words) >= _WORDS_AT_LEAST]
    if len(state) > _MOST_STATE or sum(len(name) for name, _ in units) > _MOST_UNITS:
        raise GuestError(f"{shell.name}: what it says of its units is not understood")
    active = tuple(name for name, state_of in units if state_of == "active")
    return BootState(
        mode=mode,
        state=state,
        target=next((target for target, _ in _EXPECTED.values() if target in active), ""),
        units=active,
        failed=tuple(name for name, state_of in units if state_of == "failed"),
    )


async def wait_until_booted(shell: Shell) -> None:
    """Return when the guest's own boot is over, whatever of it failed. Raises GuestError, and DeadlineExceeded."""
    # It exits with 1 in every state but "running".
    await shell.run(["systemctl", "is-system-running", "--wait"], deadline=_SETTLED_SECONDS, check=False)


async def wait_for_boot(shell: Shell, mode: Boot) -> None:
    """Return when all that `mode` starts has started. Returns at once for the lab's own mode.

    Raises GuestError where the guest has booted into something else, and DeadlineExceeded.
    """
    if mode == "lab":
        return
    await wait_until_booted(shell)
    fault = (await look_at_boot(shell, mode)).fault()
    if fault is not None:
        raise GuestError(f"{shell.name}: {fault}")


async def start_services(shell: Shell, roles: Iterable[str], deadline: float) -> None:
    """Start the units of `roles` in one guest. Raises GuestError naming each unit that is not active, and why;
    DeadlineExceeded after `deadline` seconds."""
    units = [unit for role in roles for unit in ROLES[role].units]
    if not units:
        return
    if (await shell.run(["systemctl", "start", *units], deadline=deadline, check=False)).status == 0:
        return
    faults = [f"{unit} ({why})" for unit in units if (why := await _fault(shell, unit))]
    raise GuestError(f"{shell.name}: did not start: {', '.join(faults or units)}")


async def _fault(shell: Shell, unit: str) -> str:
    """systemd's state of a `unit` that is not active, and the last line of its log; empty where it is active."""
    shown = await shell.run(["systemctl", "show", "--property=ActiveState", "--property=Result", unit], check=False)
    values = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    if values.get("ActiveState") == "active":
        return ""
    result = values.get("Result", "success")
    log = await shell.run(["journalctl", "--unit", unit, "--lines=1", "--output=cat", "--quiet"], check=False)
    return ": ".join(filter(None, [result if result != "success" else "not active", log.stdout.strip()]))


_SECONDS = 300.0
_BLOCK_BYTES = 4096
"""Of the data disk's file system, whatever its size: what is aligned for the guest is so for the host's disk."""
_MODULES: dict[DataBus, str] = {"scsi": "virtio_scsi sd_mod"}
"""The kernel's modules for a bus that the root disk is not on: without udev nothing loads them."""


async def try_discard(shell: Shell, given: GuestResources) -> None:
    """Write to the empty disk that was plugged in, and discard it, so that the host can see what is left.

    Raises GuestError where the disk does not appear or does not discard.
    """
    await shell.run(_with_program(given, "", str(TRIMMED_BYTES)), deadline=_SECONDS)


def _with_program(given: GuestResources, read_ahead: str, trimmed: str = "") -> list[str]:
    arguments = [DATA_SERIAL, DATA_FOLDER, read_ahead, _MODULES.get(given.data_bus, ""), trimmed]
    return ["sh", "-eu", "-c", payload_file("data_disk.sh").decode(), "data_disk", *arguments]


async def set_up_data_disk(shell: Shell, given: GuestResources) -> dict[str, Any]:
    """Make a file system on the disk that was plugged in, mount it at ``/data``; what the guest sees of it.

    As JSON values: `device`, `bytes`, `queues` (that its kernel uses), `read_ahead_bytes`, `write_cache`. Raises
    GuestError where the disk does not appear, or differs from what was asked for.
    """
    read_ahead = "" if given.read_ahead_bytes is None else str(given.read_ahead_bytes)
    done = await shell.run(_with_program(given, read_ahead), deadline=_SECONDS)
    seen = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    try:
        found = {
            "device": seen["device"],
            "bytes": _whole(seen["bytes"]),
            "queues": _whole(seen["queues"]),
            "read_ahead_bytes": _whole(seen["read_ahead_bytes"]),
            "write_cache": seen["write_cache"] == "write back",
        }
        expected = _expected(given, int(seen["cpus"]))
        mounted, block = seen["mounted"], int(seen["block_bytes"])
    except (KeyError, ValueError) as error:
        raise GuestError(f"{shell.name}: what it says of its data disk is not understood") from error
    if mounted != found["device"]:
        raise GuestError(f"{shell.name}: {DATA_FOLDER} is {mounted or 'not mounted'}, not on {found['device']}")
    if block != _BLOCK_BYTES:
        raise GuestError(f"{shell.name}: {DATA_FOLDER} has blocks of {block} bytes, not {_BLOCK_BYTES}")
    for name, value in expected.items():
        if found[name] != value:
            words = f"{name} {_word(found[name])}, not {_word(value)} as was asked"
            raise GuestError(f"{shell.name}: its data disk has {words}")
    if found["device"] != f"/dev/{DATA_TARGETS[given.data_bus]}":
        raise GuestError(f"{shell.name}: its data disk is {found['device']}, not on {given.data_bus} as was asked")
    return found


def _whole(text: str) -> int:
    """Raises ValueError for what no record can hold."""
    value = int(text)
    if not 0 <= value <= LARGEST_BYTES:
        raise ValueError(f"{text} is beyond all bounds")
    return value


def _expected(given: GuestResources, cpus: int) -> dict[str, Any]:
    """What the guest must see; the kernel uses no more queues than there are CPUs."""
    expected: dict[str, Any] = {
        "bytes": given.data_bytes,
        "queues": min(given.data_queues, cpus),
        "write_cache": has_write_cache(given.data_mode),
    }
    return expected if given.read_ahead_bytes is None else {**expected, "read_ahead_bytes": given.read_ahead_bytes}


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
