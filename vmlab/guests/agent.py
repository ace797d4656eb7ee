"""Runs programs in a guest through its agent only: without network and SSH, so that it works as soon as the guest is
up, and in templates of snapshots, which have no network.

A guest gets its identity so: entropy, clock, name, address, keys. For a restored guest it must be the first action
after its vCPUs run again: until then all clones of one saved guest draw the same random numbers. A guest that will be
saved is prepared likewise.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from vmlab.guests.channel import WRITE_SECONDS, CommandShell, last_line, payload_file
from vmlab.model.errors import DeadlineExceeded, GuestError, HypervisorError
from vmlab.workloads.shell import RUN_DEADLINE, Completed
from vmlab.workloads.verification import UNREADABLE

AgentCall = Callable[..., Awaitable[Any]]
"""``await call(command, arguments, deadline=seconds)``, bound to one guest."""

_ANSWER = 30.0
_PING = 5.0
_PING_AGAIN = 0.1
_SHORTEST_WAIT = 0.02
_LONGEST_WAIT = 0.5
_SHARE_OF_WAIT = 0.2
"""The wait between two polls, as a share of the time that the program has run: its end is noticed at most a fifth too
late, and few polls are made, because each costs an emulated guest some milliseconds.
"""

_PIECE = 32 * 2**10
"""Bytes in one message. An emulated guest's agent fails on messages of 256 KiB and more."""
_LONG_INPUT = "/run/vmlab/input"
_NOT_FOUND = 127
_NO_SUCH_PROGRAM = "Failed to execute child process"
LOGIN_ENVIRONMENT = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "USER=root",
    "LOGNAME=root",
    "SHELL=/bin/sh",
    "LANG=C.UTF-8",
]
"""The environment that a login over SSH gives."""


async def wait_for_agent(call: AgentCall, guest: str, deadline: float) -> None:
    """Return when the guest agent answers. Raises DeadlineExceeded after `deadline` seconds."""
    last = "no answer"
    try:
        async with asyncio.timeout(deadline):
            while True:
                try:
                    await call("guest-ping", None, deadline=_PING)
                    return
                except (HypervisorError, DeadlineExceeded) as error:
                    last = str(error)
                    await asyncio.sleep(_PING_AGAIN)
    except TimeoutError as error:
        raise DeadlineExceeded(f"{guest}: no guest agent within {deadline:.0f} s: {last}") from error


async def run_program(call: AgentCall, argv: Sequence[str], stdin: bytes, deadline: float) -> Completed:
    """Run `argv` as root to its end, without a shell between, in a login's environment and in ``/``.

    The status is 127 for a program that does not exist, 128 + signal for one that a signal killed. Both outputs
    together may be 7 MiB. Raises DeadlineExceeded after `deadline` seconds, when the program is killed, and GuestError
    when the agent fails or more was printed.
    """
    began = time.monotonic()
    try:
        pid = await _start(call, argv, stdin)
    except HypervisorError as error:
        if _NO_SUCH_PROGRAM in str(error):
            return Completed(_NOT_FOUND, "", f"{argv[0]}: not found")
        raise GuestError(f"{argv[0]} could not be started: {error}") from error
    except UNREADABLE as error:
        raise GuestError(f"{argv[0]}: the guest agent said what cannot be read: {error!r:.200}") from error
    try:
        async with asyncio.timeout(deadline - (time.monotonic() - began)):
            return _completed(argv, await _ended(call, pid))
    except TimeoutError as error:
        await _kill(call, pid)
        raise DeadlineExceeded(f"{argv[0]} took longer than {deadline:.0f} s") from error
    except HypervisorError as error:
        raise GuestError(f"{argv[0]}: the guest agent was lost: {error}") from error
    except UNREADABLE as error:
        raise GuestError(f"{argv[0]}: the guest agent said what cannot be read: {error!r:.200}") from error


async def _start(call: AgentCall, argv: Sequence[str], stdin: bytes) -> int:
    wanted = {"path": argv[0], "arg": list(argv[1:]), "env": LOGIN_ENVIRONMENT, "capture-output": True}
    if stdin:
        wanted["input-data"] = base64.b64encode(stdin).decode()
    started = await call("guest-exec", wanted, deadline=_ANSWER)
    return int(started["pid"])


async def _ended(call: AgentCall, pid: int) -> dict[str, Any]:
    began = time.monotonic()
    while True:
        status: dict[str, Any] = await call("guest-exec-status", {"pid": pid}, deadline=_ANSWER)
        if status["exited"]:
            return status
        wait = _SHARE_OF_WAIT * (time.monotonic() - began)
        await asyncio.sleep(min(_LONGEST_WAIT, max(_SHORTEST_WAIT, wait)))


def _completed(argv: Sequence[str], status: dict[str, Any]) -> Completed:
    if status.get("out-truncated") or status.get("err-truncated"):
        raise GuestError(f"{argv[0]} printed more than the guest agent keeps")
    killed = status.get("signal")
    return Completed(
        status=int(status.get("exitcode", 0)) if killed is None else 128 + int(killed),
        stdout=_decoded(status, "out-data"),
        stderr=_decoded(status, "err-data"),
    )


def _decoded(status: dict[str, Any], key: str) -> str:
    return base64.b64decode(status.get(key, "")).decode("utf-8", "replace")


async def _kill(call: AgentCall, pid: int) -> None:
    """Kill it without reporting errors: the deadline that it exceeded is the error that is raised."""
    with contextlib.suppress(HypervisorError, DeadlineExceeded):
        await call("guest-exec", {"path": "/bin/kill", "arg": ["-KILL", str(pid)]}, deadline=_PING)


class AgentShell(CommandShell):
    """`workloads.shell.Shell` over ``call``, see `agent.AgentCall`. One command runs for each call of `run`.

    `address` is the guest's address for itself; without a network no other guest can reach it.
    """

    def __init__(self, name: str, call: AgentCall, address: str = "127.0.0.1") -> None:
        super().__init__(name, address)
        self._call = call
        self._inputs = 0

    async def completed(self, argv: Sequence[str], given: bytes, deadline: float, what: str) -> Completed:
        """As `CommandShell` has it; an input that is too long for one message is written to a file before."""
        if len(given) > _PIECE:
            self._inputs += 1
            path = f"{_LONG_INPUT}.{self._inputs}"
            await self.write(path, given, mode=0o600)
            argv, given = ["/bin/sh", "-c", f"exec < {path}; rm {path}; exec {shlex.join(argv)}"], b""
        with self._naming():
            return await run_program(self._call, argv, given, deadline)

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file; see `workloads.shell.Shell.write`."""
        folder, quoted = shlex.quote(str(PurePosixPath(path).parent)), shlex.quote(path)
        pieces = [content[at : at + _PIECE] for at in range(0, len(content), _PIECE)] or [b""]
        for number, piece in enumerate(pieces):
            script = f"cat >> {quoted}" if number else f"mkdir -p {folder} && cat > {quoted} && chmod {mode:o} {quoted}"
            done = await self.completed(["/bin/sh", "-c", script], piece, WRITE_SECONDS, f"writing {path}")
            self.demand_written(path, done)

    @contextlib.contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except (GuestError, DeadlineExceeded) as error:
            raise type(error)(f"{self.name}: {error}") from error


CLOSE_ENOUGH = 30_000_000
"""Nanoseconds by which a guest's clock may be off when its work begins."""

_READINGS = 6
_QUICK = 10_000_000
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


_LARGEST_CLOCK = 2**63
"""Nanoseconds; as floats, which seconds are, larger numbers may have no value."""


async def read_clock(call: AgentCall) -> ClockReading:
    """The most certain of a few readings. Raises HypervisorError where the agent does not answer, GuestError where what
    it answers is no clock.

    The guest read its clock at some moment between question and answer, as in Cristian's algorithm: the middle is
    wrong by half of the time between them at most.
    """
    best: ClockReading | None = None
    for _ in range(_READINGS):
        asked = time.time_ns()
        try:
            guest = int(await call("guest-get-time", None, deadline=_ANSWER))
            if not abs(guest) < _LARGEST_CLOCK:
                raise ValueError("it is beyond all bounds")
        except UNREADABLE as error:
            raise GuestError(f"the guest told a clock that is none: {error!r:.200}") from error
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
    program = payload_file("identity.pl").decode()
    ended = await run_program(call, ["perl", "-w", "-e", program], lines.encode(), deadline)
    if ended.status != 0 or ended.stdout != "ok\n":
        raise GuestError(f"identity: exited with {ended.status}: {last_line(ended, 'it printed nothing')}")


async def begin_template(call: AgentCall) -> None:
    """Give a booted guest what its preparation needs: entropy, the clock, a name, and the full size of its disk.

    Raises GuestError and DeadlineExceeded.
    """
    offset = (await read_clock(call)).offset
    await run_identity(call, {"clock": str(-offset), "grow": "1", "hostname": "template"}, RUN_DEADLINE)


async def empty_template(call: AgentCall) -> None:
    """Put a prepared guest's files on disk and empty its caches. Data that is read from now on stays in memory and is
    saved with the guest.

    Raises GuestError and DeadlineExceeded.
    """
    await _run(call, "empty.sh")


async def settle_template(call: AgentCall) -> None:
    """Prepare an emptied guest for saving: read what every clone needs at once, and fill free memory with zeros.

    `Hypervisor.save` must follow at once. Raises GuestError and DeadlineExceeded.
    """
    await _run(call, "settle.sh")


async def _run(call: AgentCall, name: str) -> None:
    ended = await run_program(call, ["/bin/sh", "-eu"], payload_file(name), RUN_DEADLINE)
    if ended.status != 0:
        raise GuestError(f"the guest did not come to rest: {last_line(ended, str(ended.status))}")
