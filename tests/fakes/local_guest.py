"""A guest that is this machine: its commands do nothing and are remembered, its clients really run.

`programs` is a folder of stand-ins that come first on the clients' PATH, so that a test decides what they print.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.boot import AS_THE_LAB, obliging
from tests.fakes.guest_stops import WatchInside, is_watch
from vmlab.guests.channel import Channel, payload_file
from vmlab.guests.host_shell import HostChannel
from vmlab.model.errors import GuestError
from vmlab.workloads.shell import RUN_DEADLINE, Completed


@dataclass
class LocalGuest:
    """Implements `guests.channel.GuestShell`. A command whose first word is in `failing` fails, in `hanging` hangs.

    `boot` is what its systemd says of its boot.
    """

    name: str
    address: str
    programs: Path
    failing: frozenset[str] = frozenset()
    hanging: frozenset[str] = frozenset()
    ran: list[tuple[str, ...]] = field(default_factory=list)
    closed: bool = False
    boot: str = AS_THE_LAB
    watch: WatchInside = field(default_factory=WatchInside)

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        """Remember the command."""
        self.ran.append(tuple(argv))
        if argv[0] in self.hanging:
            await asyncio.sleep(3600)
        if argv[0] in self.failing:
            raise GuestError(f"{self.name}: {argv[0]} exited with 1: scripted to fail")
        return obliging(argv, self.boot)

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write nothing."""

    async def launch(self, argv: list[str]) -> Channel:
        """Run the real start line on this machine. What else stands still here is none of the guest's."""
        if is_watch(argv):
            return self.watch
        program = self.programs / "start_line.py"
        if not program.exists():  # A neighbour may be about to read it.
            program.write_bytes(payload_file("start_line.py"))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(program),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"},
        )
        return HostChannel(process)

    async def close(self) -> None:
        """Remember it."""
        self.closed = True
