"""The SSH connection to a guest with Windows: commands as cmd.exe reads them, files over SFTP, and a start line on this
side of it, as such a guest has no Python.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from io import StringIO
from typing import Any

import asyncssh

from vmlab.guests.channel import START_LINE, Channel
from vmlab.guests.ssh import SshShell, opened_connection
from vmlab.model.concurrency import run_all, within
from vmlab.model.errors import GuestError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED

Begin = Callable[[Sequence[str]], Awaitable[asyncssh.SSHClientProcess[str]]]
"""Asks the guest to run a command; returns once it has agreed."""
_PIECE = 65536
_MOST_WAITING = 1000
_LINE_END = re.compile(r"[\r\n]")
_FILE_SECONDS = 120.0
_PLAIN = re.compile(r"[A-Za-z0-9_.,:=/\\$+-]+", re.ASCII)
"""Words that cmd.exe and the C library of a program leave as they are."""
_UNQUOTABLE = re.compile(r'["%!\x00-\x1f]')
"""What has a meaning for cmd.exe within quotes too, or ends a command."""


def windows_command(argv: Sequence[str]) -> str:
    """The command line that OpenSSH for Windows hands to cmd.exe, its default shell, and that gives a program `argv`.

    Raises ValueError for a word that cannot be written so that both cmd.exe and the C library read it as it is.
    """
    return " ".join(_word(word) for word in argv)


def _word(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    if _UNQUOTABLE.search(word) or word.endswith("\\"):
        raise ValueError(f"{word[:80]!r} cannot be a word of a command of Windows")
    return f'"{word}"'


class WindowsShell(SshShell):
    """A guest with Windows, as `workloads.programs.WindowsPlace` describes it. Its user is an administrator.

    Paths are written with slashes, such as ``C:/vmlab/disk``.
    """

    @classmethod
    async def log_in(cls, name: str, address: str, *, user: str, key: asyncssh.SSHKey, deadline: float) -> WindowsShell:
        """As `SshShell.log_in`."""
        return cls(name, address, await opened_connection(name, address, user, key, {"known_hosts": None}, deadline))

    def command_line(self, argv: Sequence[str]) -> str:
        """As cmd.exe reads it."""
        return windows_command(argv)

    async def launch(self, argv: list[str]) -> Channel:
        """The start line alone, which then stands on this side of the connection: Windows has no Python.

        Raises GuestError for any other program.
        """
        if argv[-1] != START_LINE:
            raise GuestError(f"{self.name}: Windows cannot run {argv[0]}")
        return HostStartLine(self.name, self._begin)

    async def _begin(self, argv: Sequence[str]) -> asyncssh.SSHClientProcess[str]:
        return await self._connection.create_process(
            self.command_line(argv), encoding="utf-8", errors="replace", stdin=asyncssh.DEVNULL
        )

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file; Windows has no use for its `mode`. Raises as `Shell.write`."""
        async with self._files(f"cannot write {path}") as files:
            await files.makedirs(_remote(path.rpartition("/")[0]), exist_ok=True)
            async with files.open(_remote(path), "wb") as file:
                await file.write(content)

    async def read(self, path: str) -> str:
        """A file's text, with a newline alone where Windows ends a line.

        Raises GuestError, also for more than `MOST_PRINTED` bytes, and DeadlineExceeded.
        """
        async with self._files(f"cannot read {path}") as files, files.open(_remote(path), "rb") as file:
            content: bytes = await file.read(MOST_PRINTED + 1)
        if len(content) > MOST_PRINTED:
            raise GuestError(f"{self.name}: {path} is larger than {format_bytes(MOST_PRINTED)}")
        return content.decode("utf-8", "replace").replace("\r\n", "\n")

    async def make_folder(self, path: str) -> None:
        """Make an empty folder, with those above it; what was in it is removed. Raises as `read`."""
        await self.remove_folder(path)
        async with self._files(f"cannot make {path}") as files:
            await files.makedirs(_remote(path))

    async def sizes(self, path: str) -> dict[str, int]:
        """The bytes of each file in a folder, by its name. Raises as `read`."""
        async with self._files(f"cannot list {path}") as files:
            listed = await files.readdir(_remote(path))
            return {str(one.filename): int(one.attrs.size or 0) for one in listed if one.filename not in (".", "..")}

    async def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it; one that is not there is no error. Raises as `read`."""
        async with self._files(f"cannot remove {path}") as files:
            if await files.exists(_remote(path)):
                await files.rmtree(_remote(path))

    @asynccontextmanager
    async def _files(self, what: str) -> AsyncIterator[Any]:
        late = f"{self.name}: {what} within {_FILE_SECONDS:g} s"
        try:
            async with within(_FILE_SECONDS, late), self._connection.start_sftp_client() as files:
                yield files
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self.name}: {what}: {error}") from error


def _remote(path: str) -> str:
    """The path as the SFTP server of Windows has it."""
    return f"/{path}"


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
            await self._said.put({"pong": order["ping"], "clock": time.monotonic()})
        elif "start" in order:
            self._client = asyncio.ensure_future(self._run(order["start"]))

    async def _run(self, start: float) -> None:
        try:
            await asyncio.sleep(max(0.0, start - time.monotonic()))
            process = self._process = await self._begin(self._argv)
            began = time.monotonic()
            await self._said.put({"started": began, "missed": began - start})
            await run_all([self._relay(process.stdout, "out"), self._relay(process.stderr, "err")])
            await process.wait_closed()
            if process.returncode is None:
                raise ConnectionError("connection lost")
            clock = time.monotonic()
            ended = {"status": process.returncode, "seconds": clock - began, "clock": clock}
            await self._said.put({"ended": ended})
        except (OSError, asyncssh.Error, ValueError) as error:
            await self._said.put(GuestError(f"{self._name}: {self._argv[0]}: {error}"))

    async def _relay(self, stream: asyncssh.SSHReader[str], key: str) -> None:
        begun = StringIO()
        # Who follows refuses a line that is longer.
        while begun.tell() <= MOST_PRINTED and (piece := await stream.read(_PIECE)):
            *lines, rest = _LINE_END.split(piece)
            if lines:
                lines[0] = begun.getvalue() + lines[0]
                begun = StringIO()
            begun.write(rest)
            for line in filter(None, lines):
                await self._said.put({key: line})
        if line := begun.getvalue():
            await self._said.put({key: line})

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
