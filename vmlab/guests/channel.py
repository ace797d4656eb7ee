"""A running program with lines in and lines out, wherever it runs."""

from __future__ import annotations

from typing import Protocol

from vmlab.workloads.contract import Shell

START_LINE = "/run/vmlab/start_line.py"


class Channel(Protocol):
    """Lines to and from a program. Closing it ends the program."""

    async def send(self, line: str) -> None:
        """Write one line, without its newline."""
        ...

    async def receive(self) -> str:
        """Next line without its newline; the empty string at the end of the stream."""
        ...

    async def close(self) -> None:
        """Close both ways; idempotent."""
        ...


class Launching(Protocol):
    """A shell that can also start a program and stay connected to it."""

    async def launch(self, argv: list[str]) -> Channel:
        """Start `argv`; raises GuestError when that fails."""
        ...


class GuestShell(Shell, Launching, Protocol):
    """The open connection to one guest."""

    async def close(self) -> None:
        """Close it at once."""
        ...
