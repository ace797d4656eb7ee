"""Gives a guest its identity through the guest agent: entropy, clock, name, address, keys.

The agent needs no network, so the same path serves a guest that booted and one that was restored. For a restored guest
it must be the first action after its vCPUs run again: until then all clones of one saved guest draw the same random
numbers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from vmlab.guests.agent import AgentCall, run_program, wait_for_agent
from vmlab.guests.guest_clock import ClockReading, read_clock, settle_clock
from vmlab.model.errors import GuestError, HypervisorError

__all__ = ["AgentCall", "Identity", "identify", "wait_for_agent"]

_ENTROPY_BYTES = 64


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
