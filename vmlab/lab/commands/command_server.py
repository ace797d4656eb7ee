"""The commands that a runner understands, and the socket on which it takes them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from signal import Signals
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError

from vmlab.lab.commands.asking import OF_COMING_CELLS, OF_RUNNING_GUESTS
from vmlab.model.errors import RefusedError, UsageError, VmlabError
from vmlab.system.removal import remove_file

_LONGEST_LINE = 65536
_LONGEST_VALUE = 40


class _Command(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    origin: str = "vmlab"
    """Who asks, in words for people."""


class Stop(_Command):
    """End the run as this signal would."""

    command: Literal["stop"] = "stop"
    signal: Literal["SIGINT", "SIGTERM"] = "SIGINT"

    @property
    def number(self) -> Signals:
        """The signal itself."""
        return Signals[self.signal]


class Release(_Command):
    """Let the cell with this number begin, in a run that is held; without one, let the run end."""

    command: Literal["release"] = "release"
    cell: int | None = None
    together: bool = False
    """Its workloads wait for the moment that `StartAt` gives."""


class StartAt(_Command):
    """Give the moment at which the workloads of a cell start, by the host's monotonic clock."""

    command: Literal["start"] = "start"
    cell: int
    mono: Annotated[float, Field(gt=0, lt=1e12)]


class CallOff(_Command):
    """End a cell as failed, which other hosts run at the same time; the run goes on."""

    command: Literal["call-off"] = "call-off"
    cell: int
    reason: Annotated[str, Field(max_length=1000)]


class Keep(_Command):
    """Say to a run that is held that whoever releases its cells is still there."""

    command: Literal["keep"] = "keep"


class ListComing(_Command):
    """List the cells to come."""

    command: Literal["coming"] = "coming"


class ChangeComing(_Command):
    """Change all cells to come, or the one with the number `cell`."""

    command: Literal["set"] = "set"
    now: Literal[False] = False
    cell: int | None = None
    cache: str | None = None
    tiles: int | None = None
    skip: bool = False
    as_planned: bool = False

    @property
    def values(self) -> dict[str, str | int]:
        """The new values by axis."""
        return _given(self, OF_COMING_CELLS)


class ChangeRunning(_Command):
    """Change the cell that runs."""

    command: Literal["set"] = "set"
    now: Literal[True] = True
    cache: str | None = None
    ksm: str | None = None
    tiles: int | None = None
    end: bool = False

    @property
    def values(self) -> dict[str, str | int]:
        """What is to be changed, with ``end`` for a loop that is to end."""
        return _given(self, OF_RUNNING_GUESTS) | ({"end": True} if self.end else {})


def _given(command: _Command, names: tuple[str, ...]) -> dict[str, str | int]:
    return {name: value for name in names if (value := getattr(command, name)) is not None}


def _tag(body: Any) -> str | None:
    if not isinstance(body, dict) or "command" not in body:
        return None
    return "set now" if body["command"] == "set" and body.get("now") is True else str(body["command"])


Command = Annotated[
    Annotated[Stop, Tag("stop")]
    | Annotated[Release, Tag("release")]
    | Annotated[Keep, Tag("keep")]
    | Annotated[StartAt, Tag("start")]
    | Annotated[CallOff, Tag("call-off")]
    | Annotated[ListComing, Tag("coming")]
    | Annotated[ChangeComing, Tag("set")]
    | Annotated[ChangeRunning, Tag("set now")],
    Discriminator(_tag),
]
_COMMANDS: TypeAdapter[Command] = TypeAdapter(Command)

Handler = Callable[[Command], Awaitable[Mapping[str, Any]]]
"""Carries out a command and returns the answer as JSON values; raises VmlabError to refuse."""


def parse_command(line: bytes) -> Command:
    """The command in one line of JSON. Raises UsageError, in one line, for anything else."""
    try:
        return _COMMANDS.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    if first["type"] == "union_tag_invalid":
        raise UsageError(f"this runner has no command {_short(first['ctx']['tag'])}")
    # The first place is the tag of the union.
    if not (name := ".".join(map(str, first["loc"][1:]))):
        raise UsageError("not a command: one JSON object with a `command` is needed")
    if first["type"] == "extra_forbidden":
        raise UsageError(f"{first['loc'][0]} takes no {_short(name)}")
    raise UsageError(f"{name} cannot be {_short(first['input'])}: {first['msg'].lower()}")


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
