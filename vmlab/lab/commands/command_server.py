"""The runner's end of the socket on which verbs are said."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from vmlab.lab.commands.verbs import VERBS, Verb
from vmlab.model.checked import made
from vmlab.model.errors import RefusedError, UsageError, VmlabError
from vmlab.system.removal import remove_file

_LONGEST_LINE = 65536
_LONGEST_VALUE = 40
Handler = Callable[[Verb], Awaitable[Mapping[str, Any]]]
"""Carries out a verb and returns the answer as JSON values; raises VmlabError to refuse."""


def parse_command(line: bytes) -> Verb:
    """The verb in one line of JSON. Raises UsageError, in one line, for anything else."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or "command" not in body:
        raise UsageError("not a command: one JSON object with a `command` is needed")
    name = body.pop("command")
    kinds = [one for one in VERBS if one.command == name]
    if not kinds:
        raise UsageError(f"this runner has no command {_short(name)}")
    # `set` is two verbs, of which the second is said with ``now``.
    kind = kinds[-1] if body.get("now") is True else kinds[0]
    if unknown := [field for field in body if field not in {one.name for one in fields(kind)}]:
        raise UsageError(f"{name} takes no {_short(unknown[0])}")
    try:
        return made(kind, body)
    except (ValueError, RecursionError) as error:
        raise UsageError(str(error).removeprefix(f"{kind.__name__}: ")) from error


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _user_of(connection: socket.socket) -> int:
    """The effective user id of the process that has connected, as the kernel has it: unix(7), SO_PEERCRED."""
    form = struct.Struct("3i")
    user: int = form.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size))[1]
    return user


class ControlServer:
    """The runner's end. The socket is its user's alone, and the kernel says of each peer who it is."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self._path = path
        self._handler = handler
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Start listening. Raises RefusedError where the socket cannot be made."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._server = await asyncio.start_unix_server(self._serve, self._path, limit=_LONGEST_LINE)
            self._path.chmod(0o600)
        except OSError as error:
            why = f"cannot listen for commands at {self._path}: {error.strerror or error}"
            raise RefusedError(why, remedy="VMLAB_RUNTIME_DIR moves the folder") from error

    async def close(self) -> None:
        """Stop listening. A socket that cannot be removed is removed with its folder when the run is cleared up."""
        if self._server is not None:
            self._server.close()
        with contextlib.suppress(OSError):
            remove_file(self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.LimitOverrunError):
            async with asyncio.timeout(10):
                line = await reader.readline()
            answer = await self._answer(line, _user_of(writer.get_extra_info("socket")))
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, line: bytes, user: int) -> dict[str, Any]:
        try:
            if user not in (0, os.geteuid()):
                raise RefusedError(f"the run is not one of user {user}")
            return {"ok": True, **await self._handler(parse_command(line))}
        except VmlabError as error:
            return {"ok": False, "error": str(error), "exit_code": int(error.exit_code)}
