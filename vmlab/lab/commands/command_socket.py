"""Commands to a running runner: one JSON line in, one JSON line out, over a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from vmlab.model.errors import CommandFailed, ExitCode, RefusedError, UsageError, VmlabError
from vmlab.system.removal import remove_file

_LONGEST_LINE = 65536
_LONGEST_ANSWER = 64 * 2**20
"""The list of thousands of cells to come has a few hundred bytes for each."""

Handler = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Takes the command and its arguments, returns the answer; raises VmlabError to refuse."""
_FAILURES: dict[int, type[VmlabError]] = {ExitCode.FAILED: CommandFailed, ExitCode.REFUSED: RefusedError}
"""The error that a refusal becomes for who asked, by its exit code; any other is one of usage."""


class NotListening(UsageError):
    """No runner listens at the socket: it has not started yet, or has ended."""


class NotAnswering(UsageError):
    """The runner exists but does not answer: it was stopped (SIGSTOP) or hangs."""


class ControlServer:
    """The runner's end. Only root can reach the socket: its folder is the run's own."""

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
            writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            body = json.loads(line)
            return {"ok": True, **await self._handler(str(body.pop("command")), body)}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {"ok": False, "error": "not a command: one JSON object with a `command` is needed"}
        except VmlabError as error:
            return {"ok": False, "error": str(error), "exit_code": int(error.exit_code)}


def send_command(path: Path, command: str, *, deadline: float = 10.0, **arguments: Any) -> dict[str, Any]:
    """Send one command and return its answer; `deadline` is in seconds.

    Raises NotListening, NotAnswering, and with the runner's message UsageError or RefusedError when it refuses, and
    CommandFailed when it could not do it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(deadline)
        try:
            connection.connect(str(path))
        except TimeoutError as error:
            raise NotAnswering(f"the runner does not answer: {error}") from error
        except OSError as error:
            raise NotListening(f"the runner does not answer: {error}") from error
        try:
            connection.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            with connection.makefile("rb") as answer:
                line = answer.readline(_LONGEST_ANSWER + 1)
                if len(line) > _LONGEST_ANSWER:
                    raise ValueError("its answer is too long")
                body: dict[str, Any] = json.loads(line)
        except (OSError, ValueError, RecursionError) as error:
            raise NotAnswering(f"the runner does not answer: {error}") from error
    if not body.get("ok"):
        failure = _FAILURES.get(body.get("exit_code", ExitCode.USAGE), UsageError)
        raise failure(str(body.get("error", "refused")))
    return body
