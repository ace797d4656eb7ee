"""Runs programs in a guest through its agent only: without network and SSH, so that it works as soon as the guest is
up, and in templates of snapshots, which have no network.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shlex
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from vmlab.guests.channel import WRITE_SECONDS, CommandShell
from vmlab.model.errors import DeadlineExceeded, GuestError, HypervisorError
from vmlab.workloads.contract import Completed
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
    """`workloads.contract.Shell` over ``call``, see `agent.AgentCall`. One command runs for each call of `run`.

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
        """Write a file; see `workloads.contract.Shell.write`."""
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
