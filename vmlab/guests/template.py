"""What is done to a guest that will be saved: before its preparation, and as the last step after it."""

from __future__ import annotations

from importlib import resources

from vmlab.guests.agent import AgentCall, run_program
from vmlab.guests.guest_clock import read_clock
from vmlab.guests.identity import run_identity
from vmlab.model.errors import GuestError
from vmlab.workloads.contract import RUN_DEADLINE

_NAME = "template"
_EMPTY = "empty.sh"
_SETTLE = "settle.sh"


async def begin_template(call: AgentCall, deadline: float = RUN_DEADLINE) -> None:
    """Give a booted guest what its preparation needs: entropy, the clock, a name, and the full size of its disk.

    Raises GuestError and DeadlineExceeded.
    """
    offset = (await read_clock(call)).offset
    await run_identity(call, {"clock": str(-offset), "grow": "1", "hostname": _NAME}, deadline)


async def empty_template(call: AgentCall, deadline: float = RUN_DEADLINE) -> None:
    """Put a prepared guest's files on disk and empty its caches. Data that is read from now on stays in memory and is
    saved with the guest.

    Raises GuestError and DeadlineExceeded.
    """
    await _run(call, _EMPTY, deadline)


async def settle_template(call: AgentCall, deadline: float = RUN_DEADLINE) -> None:
    """Prepare an emptied guest for saving: read what every clone needs at once, and fill free memory with zeros.

    `Hypervisor.save` must follow at once. Raises GuestError and DeadlineExceeded.
    """
    await _run(call, _SETTLE, deadline)


async def _run(call: AgentCall, name: str, deadline: float) -> None:
    program = resources.files("vmlab.guests.payload").joinpath(name).read_text(encoding="utf-8")
    ended = await run_program(call, ["/bin/sh", "-eu"], program.encode(), deadline)
    if ended.status != 0:
        lines = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise GuestError(f"the guest did not come to rest: {lines[-1] if lines else ended.status}")
