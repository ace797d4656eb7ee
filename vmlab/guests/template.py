"""What is done to a guest that will be saved: before its preparation, and as the last thing after it."""

from __future__ import annotations

from importlib import resources

from vmlab.guests.agent import AgentCall, run_program
from vmlab.guests.clock import read_clock
from vmlab.guests.identity import run_identity
from vmlab.model.errors import GuestError

_NAME = "template"
_EMPTY = "empty.sh"
_SETTLE = "settle.sh"


async def begin_template(call: AgentCall, deadline: float = 120.0) -> None:
    """Give a booted guest what its preparation needs: entropy, the clock, a name, and the whole of its disk.

    Raises GuestError and DeadlineExceeded.
    """
    offset = (await read_clock(call)).offset
    await run_identity(call, {"clock": str(-offset), "grow": "1", "hostname": _NAME}, deadline)


async def empty_template(call: AgentCall, deadline: float = 300.0) -> None:
    """Put a prepared guest's files on disk and empty its caches. What is read from now on is saved with the guest.

    Raises GuestError and DeadlineExceeded.
    """
    await _run(call, _EMPTY, deadline)


async def settle_template(call: AgentCall, deadline: float = 300.0) -> None:
    """Bring an emptied guest to rest: what any clone needs at once is read into memory, free memory is zero.

    To be followed by `Hypervisor.save` at once. Raises GuestError and DeadlineExceeded.
    """
    await _run(call, _SETTLE, deadline)


async def _run(call: AgentCall, name: str, deadline: float) -> None:
    program = resources.files("vmlab.guests.payload").joinpath(name).read_text(encoding="utf-8")
    ended = await run_program(call, ["/bin/sh", "-eu"], program.encode(), deadline)
    if ended.status != 0:
        said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise GuestError(f"the guest did not come to rest: {said[-1] if said else ended.status}")
