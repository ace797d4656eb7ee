"""Sends commands to a running runner: one JSON line in, one JSON line out, over a Unix socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from vmlab.model.errors import CommandFailed, ExitCode, RefusedError, UsageError, VmlabError

_LONGEST_ANSWER = 64 * 2**20
"""The list of thousands of cells to come has a few hundred bytes for each."""

_FAILURES: dict[int, type[VmlabError]] = {ExitCode.FAILED: CommandFailed, ExitCode.REFUSED: RefusedError}
"""The error that a refusal becomes for who asked, by its exit code; any other is one of usage."""


class NotListening(UsageError):
    """No runner listens at the socket: it has not started yet, or has ended."""


class NotAnswering(UsageError):
    """The runner exists but does not answer: it was stopped (SIGSTOP) or hangs."""


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
