"""Where commands of workloads run: in a guest, or on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended: exit status, and its text output, decoded as UTF-8 with replacement."""

    status: int
    stdout: str
    stderr: str


RUN_DEADLINE = 300.0
"""Seconds that a command in a guest may take where nothing else is said.

A dead guest is noticed within seconds by other means, so that this ends only what hangs. On a host that is emulated
itself, with four guests on one processor, a command took more than two minutes.
"""


class Shell(Protocol):
    """A place where commands run: a guest over SSH, or the host inside the guest image's root file system."""

    @property
    def name(self) -> str:
        """The guest's name in the scenario, or ``host``."""
        ...

    @property
    def address(self) -> str:
        """Its own IPv4 address in the lab's network; see `WorkloadContext.peer_address` for where others reach it."""
        ...

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        """Run `argv` as root, without a shell between. Raises GuestError when it exits non-zero and `check` holds,
        and DeadlineExceeded after `deadline` seconds."""
        ...

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file, with its parent folders made where missing."""
        ...
