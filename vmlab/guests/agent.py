"""Runs programs in a guest through its agent only: without network and SSH, so that it works as soon as the guest is
up.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

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
