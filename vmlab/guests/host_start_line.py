"""The start line for a guest that has no Python: it stands on this side of the SSH connection."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncssh

from vmlab.model.concurrency import run_all
from vmlab.model.errors import GuestError

Begin = Callable[[Sequence[str]], Awaitable[asyncssh.SSHClientProcess[str]]]
"""Asks the guest to run a command; returns once it has agreed."""
_PIECE = 65536
_MOST_WAITING = 1000
_LINE_END = re.compile(r"[\r\n]")


class HostStartLine:
    """A `channel.Channel` with the messages of ``payload/start_line.py``, for one client on the guest `name`.

    The guest is asked for the client at the common start, so the client begins later by its way there and by what
    Windows takes to start a program. `started` is the moment at which the guest had agreed. The clock is the host's,
    and so are the client's seconds, from that moment until its end was heard of here.
    """

    def __init__(self, name: str, begin: Begin) -> None:
        self._name = name
        self._begin = begin
        self._said: asyncio.Queue[dict[str, Any] | GuestError] = asyncio.Queue(_MOST_WAITING)
        self._argv: list[str] = []
        self._client: asyncio.Task[None] | None = None
        self._process: asyncssh.SSHClientProcess[str] | None = None

    async def send(self, line: str) -> None:
        """Take one order. Raises GuestError for a client with an environment or an input of its own."""
        order = json.loads(line)
        if "argv" in order:
            if order["environment"] or order["stdin"]:
                raise GuestError(f"{self._name}: a client on Windows has neither environment nor input")
            self._argv = order["argv"]
            await self._said.put({"ready": True})
        elif "ping" in order:
            await self._said.put({"pong": order["ping"], "clock": time.time()})
        elif "start" in order:
            self._client = asyncio.ensure_future(self._run(order["start"]))

    async def _run(self, start: float) -> None:
        try:
            await asyncio.sleep(max(0.0, start - time.time()))
            process = self._process = await self._begin(self._argv)
            clock, began = time.time(), time.monotonic()
            await self._said.put({"started": clock, "missed": clock - start})
            await run_all([self._relay(process.stdout, "out"), self._relay(process.stderr, "err")])
            await process.wait_closed()
            if process.returncode is None:
                raise ConnectionError("connection lost")
            ended = {"status": process.returncode, "seconds": time.monotonic() - began, "clock": time.time()}
            await self._said.put({"ended": ended})
        except (OSError, asyncssh.Error, ValueError) as error:
            await self._said.put(GuestError(f"{self._name}: {self._argv[0]}: {error}"))

    async def _relay(self, stream: asyncssh.SSHReader[str], key: str) -> None:
        rest = ""
        while piece := await stream.read(_PIECE):
            *lines, rest = _LINE_END.split(rest + piece)
            for line in filter(None, lines):
                await self._said.put({key: line})
        if rest:
            await self._said.put({key: rest})

    async def receive(self) -> str:
        """The next message. Raises GuestError where the guest did not run the client, or has gone."""
        said = await self._said.get()
        if isinstance(said, GuestError):
            raise said
        return json.dumps(said)

    async def close(self) -> None:
        """End the client's channel; Windows may let the client itself go on until its guest ends."""
        if self._client is not None:
            self._client.cancel()
        if self._process is not None:
            self._process.close()
