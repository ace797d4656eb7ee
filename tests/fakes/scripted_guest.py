"""A guest in memory whose clients are in memory, too: it speaks the start line's protocol and prints a given text."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.boot import obliging
from tests.fakes.guest_stops import WatchInside, is_watch
from vmlab.workloads.shell import RUN_DEADLINE, Completed


@dataclass(frozen=True, slots=True)
class Script:
    """How a client works: what it prints, how late it starts, how long it works and exits with what `status`.

    `clock_rate` is how fast the guest's clock runs by which it tells its own seconds. With `go` it works until that is
    set, however long that takes.
    """

    output: str
    late: float = 0.0
    seconds: float = 0.02
    clock_rate: float = 1.0
    status: int = 0
    go: asyncio.Event | None = None


class ScriptedClient:
    """`guests.channel.Channel`: holds a client, tells its clock, starts it when it is told, and ends it."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._said: asyncio.Queue[tuple[float, dict[str, Any]]] = asyncio.Queue()
        self._began = 0.0
        self.closed = False

    async def send(self, line: str) -> None:
        """Take one order."""
        order = json.loads(line)
        if "argv" in order:
            self._say(ready=True)
        elif "ping" in order:
            self._say(pong=order["ping"], clock=time.time())
        elif "start" in order:
            self._work(order["start"])

    def _work(self, start: float) -> None:
        script = self._script
        begin = start + script.late
        end = begin + script.seconds
        self._began = begin
        self._say(begin, started=begin, missed=0.0)
        for line in script.output.splitlines():
            self._say(end, out=line)
        self._say(end, ended={"status": script.status, "seconds": script.seconds * script.clock_rate, "clock": end})

    def _say(self, at: float = 0.0, **message: Any) -> None:
        self._said.put_nowait((at, message))

    async def receive(self) -> str:
        """The next message, when its time has come."""
        at, message = await self._said.get()
        if at > time.time():
            await asyncio.sleep(at - time.time())
        if self._script.go is not None and ("out" in message or "ended" in message):
            await self._script.go.wait()
            if "ended" in message:
                now = time.time()
                message["ended"] |= {"seconds": now - self._began, "clock": now}
        return json.dumps(message)

    async def close(self) -> None:
        """Remember it."""
        self.closed = True


@dataclass
class ScriptedGuest:
    """`guests.channel.GuestShell`. Commands succeed and say nothing; every client works as `script` says."""

    name: str
    address: str
    script: Script
    clients: list[ScriptedClient] = field(default_factory=list)
    closed: bool = False
    commands: list[str] = field(default_factory=list)
    """The last word of each command, and ``launch`` for a client, in order."""

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        """Do nothing."""
        self.commands.append(" ".join(argv))
        await asyncio.sleep(0)
        return obliging(argv)

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write nothing."""
        await asyncio.sleep(0)

    async def launch(self, argv: list[str]) -> ScriptedClient | WatchInside:
        """A client that waits."""
        if is_watch(argv):
            return WatchInside()
        self.commands.append("launch")
        await asyncio.sleep(0)
        self.clients.append(ScriptedClient(self.script))
        return self.clients[-1]

    async def close(self) -> None:
        """Remember it."""
        self.closed = True
