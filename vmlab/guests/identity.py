"""Gives a guest its identity through the guest agent: entropy, clock, name, address, keys; and prepares a guest that
will be saved.

The agent needs no network, so the same path serves a guest that booted and one that was restored. For a restored guest
it must be the first action after its vCPUs run again: until then all clones of one saved guest draw the same random
numbers.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from vmlab.guests.agent import AgentCall, run_program
from vmlab.model.errors import GuestError, HypervisorError
from vmlab.workloads.contract import RUN_DEADLINE

CLOSE_ENOUGH = 30_000_000
"""Nanoseconds by which a guest's clock may be off when its work begins."""

_READINGS = 6
_QUICK = 10_000_000
_ANSWER = 30.0
_TRIES = 8
_PAUSE = 0.1
_ENTROPY_BYTES = 64


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The guest's clock minus the host's, in nanoseconds, give or take `uncertainty`: half of the round trip."""

    offset: int
    uncertainty: int

    @property
    def close(self) -> bool:
        """Whether the clock is certainly within CLOSE_ENOUGH."""
        return abs(self.offset) + self.uncertainty <= CLOSE_ENOUGH

    @property
    def certainly_off(self) -> bool:
        """Whether the clock is certainly not within CLOSE_ENOUGH."""
        return abs(self.offset) - self.uncertainty > CLOSE_ENOUGH


async def read_clock(call: AgentCall) -> ClockReading:
    """The most certain of a few readings. Raises HypervisorError where the agent does not answer.

    The guest read its clock at some moment between question and answer, as in Cristian's algorithm: the middle is
    wrong by half of the time between them at most.
    """
    best: ClockReading | None = None
    for _ in range(_READINGS):
        asked = time.time_ns()
        guest = int(await call("guest-get-time", None, deadline=_ANSWER))
        answered = time.time_ns()
        reading = ClockReading(guest - (asked + answered) // 2, (answered - asked + 1) // 2)
        if best is None or reading.uncertainty < best.uncertainty:
            best = reading
        if best.uncertainty <= _QUICK:
            break
    assert best is not None
    return best


async def settle_clock(call: AgentCall, step: Callable[[int], Awaitable[None]]) -> ClockReading:
    """The last reading, after `step` was given the nanoseconds to step by, in a few tries at most.

    A step lands within the uncertainty of the reading before it, so a second one is needed on a busy host only.
    """
    reading = await read_clock(call)
    for _ in range(_TRIES):
        if reading.close:
            break
        if reading.certainly_off:
            await step(-reading.offset)
        else:
            await asyncio.sleep(_PAUSE)
        reading = await read_clock(call)
    return reading


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a guest. `address` is IPv4, `prefix` its length, `hosts` lines for /etc/hosts."""

    hostname: str
    address: str
    prefix: int
    host_key: bytes
    authorized_key: str
    hosts: str

    def parts(self, run: str) -> dict[str, str]:
        """The input of the guest's identity program; the machine-id is derived from the run."""
        return {
            "hostname": self.hostname,
            "address": f"{self.address}/{self.prefix}",
            "machine_id": hashlib.sha256(f"{run}/{self.hostname}".encode()).hexdigest()[:32],
            "host_key": self.host_key.hex(),
            "authorized_key": self.authorized_key,
            "hosts": self.hosts.encode().hex(),
        }


async def identify(call: AgentCall, identity: Identity, run: str, deadline: float) -> ClockReading:
    """Give a guest its identity and start sshd; returns the deviation of its clock afterwards.

    64 bytes of the host's entropy are mixed in before anything else. The clock is stepped until it is within 30 ms, in
    a few tries; on a host that is too busy for that, the reading has a larger uncertainty. Raises GuestError, naming
    the guest, and DeadlineExceeded after `deadline` seconds for the program itself.
    """
    try:
        before = await read_clock(call)
        await run_identity(call, {"clock": str(-before.offset), "grow": "1", **identity.parts(run)}, deadline)
        return await settle_clock(call, lambda by: run_identity(call, {"clock": str(by)}, deadline))
    except (GuestError, HypervisorError) as error:
        raise GuestError(f"{identity.hostname}: {error}") from error


async def run_identity(call: AgentCall, parts: Mapping[str, str], deadline: float) -> None:
    """Run the guest's identity program with fresh entropy and `parts` of an identity; see its own heading.

    Raises GuestError and DeadlineExceeded.
    """
    given = {"entropy": os.urandom(_ENTROPY_BYTES).hex(), **parts}
    lines = "".join(f"{key}={value}\n" for key, value in given.items())
    ended = await run_program(call, ["perl", "-w", "-e", _program()], lines.encode(), deadline)
    if ended.status != 0 or ended.stdout != "ok\n":
        printed = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise GuestError(f"identity: exited with {ended.status}: {printed[-1] if printed else 'it printed nothing'}")


@cache
def _program() -> str:
    return resources.files("vmlab.guests.payload").joinpath("identity.pl").read_text(encoding="utf-8")


async def begin_template(call: AgentCall, deadline: float = RUN_DEADLINE) -> None:
    """Give a booted guest what its preparation needs: entropy, the clock, a name, and the full size of its disk.

    Raises GuestError and DeadlineExceeded.
    """
    offset = (await read_clock(call)).offset
    await run_identity(call, {"clock": str(-offset), "grow": "1", "hostname": "template"}, deadline)


async def empty_template(call: AgentCall, deadline: float = RUN_DEADLINE) -> None:
    """Put a prepared guest's files on disk and empty its caches. Data that is read from now on stays in memory and is
    saved with the guest.

    Raises GuestError and DeadlineExceeded.
    """
    await _run(call, "empty.sh", deadline)


async def settle_template(call: AgentCall, deadline: float = RUN_DEADLINE) -> None:
    """Prepare an emptied guest for saving: read what every clone needs at once, and fill free memory with zeros.

    `Hypervisor.save` must follow at once. Raises GuestError and DeadlineExceeded.
    """
    await _run(call, "settle.sh", deadline)


async def _run(call: AgentCall, name: str, deadline: float) -> None:
    program = resources.files("vmlab.guests.payload").joinpath(name).read_text(encoding="utf-8")
    ended = await run_program(call, ["/bin/sh", "-eu"], program.encode(), deadline)
    if ended.status != 0:
        lines = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise GuestError(f"the guest did not come to rest: {lines[-1] if lines else ended.status}")
