"""A running program with lines in and lines out, wherever it runs; and what shells have in common."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib import resources
from typing import Protocol

from vmlab.model.errors import GuestError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED
from vmlab.workloads.shell import RUN_DEADLINE, Completed, Shell

START_LINE = "/run/vmlab/start_line.py"
PAGE_CACHE = "/run/vmlab/page_cache.py"
GUEST_STOPS = "/run/vmlab/guest_stops.py"
SEND_SECONDS, CLOSE_SECONDS, WRITE_SECONDS = 30.0, 5.0, 60.0
"""How long a line may take to be sent, the end of a channel, and the writing of a file."""
PIECE = 65536
"""Bytes that are read at once of what a program prints."""
_WRITE = 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"'


@cache
def payload_file(name: str) -> bytes:
    """A program that runs inside guests."""
    return resources.files("vmlab.guests.payload").joinpath(name).read_bytes()


def last_line(completed: Completed, otherwise: str) -> str:
    """The last line that a program printed, of its errors if there are any; `otherwise` where it printed none."""
    return ((completed.stderr.strip() or completed.stdout.strip()).splitlines() or [otherwise])[-1]


class Channel(Protocol):
    """Lines to and from a program. Closing it ends the program."""

    async def send(self, line: str) -> None:
        """Write one line, without its newline."""

    async def receive(self) -> str:
        """Next line without its newline; the empty string at the end of the stream."""

    async def close(self) -> None:
        """Close both ways; idempotent."""


class Launching(Protocol):
    """A shell that can also start a program and stay connected to it."""

    async def launch(self, argv: list[str]) -> Channel:
        """Start `argv`; raises GuestError when that fails."""


class GuestShell(Shell, Launching, Protocol):
    """The open connection to one guest."""

    async def close(self) -> None:
        """Close it at once."""


class CommandShell(ABC):
    """`workloads.shell.Shell` for a place where each command runs to its end: `name` and `address` are as there."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address

    @abstractmethod
    async def completed(self, argv: Sequence[str], given: bytes, deadline: float, what: str) -> Completed:
        """Run a command with the input `given`; errors say `what` is done. Raises GuestError, DeadlineExceeded."""

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        """Run a command to its end; see `workloads.shell.Shell.run`."""
        completed = await self.completed(argv, (stdin or "").encode(), deadline, argv[0])
        if check and completed.status != 0:
            raise GuestError(f"{self.name}: {describe_failure(argv, completed)}")
        return completed

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file; see `workloads.shell.Shell.write`."""
        argv = ["sh", "-c", _WRITE, "sh", path, f"{mode:o}"]
        self.demand_written(path, await self.completed(argv, content, WRITE_SECONDS, f"writing {path}"))

    def demand_written(self, path: str, completed: Completed) -> None:
        """Raises GuestError where the command that writes a file failed."""
        if completed.status != 0:
            raise GuestError(f"{self.name}: cannot write {path}: {completed.stderr.strip()}")


async def whole_output(read: Callable[[int], Awaitable[bytes]], shell: str, name: str) -> bytes:
    """What the program `name` prints to its end. Raises GuestError for more than `MOST_PRINTED`."""
    held = bytearray()
    while piece := await read(PIECE):
        held += piece
        if len(held) > MOST_PRINTED:
            raise GuestError(f"{shell}: {name} printed more than {format_bytes(MOST_PRINTED)}")
    return bytes(held)


def describe_failure(argv: Sequence[str], completed: Completed) -> str:
    """One line: the command, its status and the last line that it printed, or the last that says "error"."""
    lines = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    errors = [line for line in lines if "error" in line.lower()]
    tail = f": {(errors or lines)[-1][:300]}" if lines else ""
    return f"{shlex.join(argv)[:120]} exited with {completed.status}{tail}"
