"""A guest's shell through its agent, for guests without a network, as templates of snapshots are."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from vmlab.guests.agent import AgentCall, run_program
from vmlab.guests.ssh import describe_failure
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.workloads.contract import RUN_DEADLINE, Completed

_PIECE = 32 * 2**10
"""Bytes in one message. An emulated guest's agent fails on messages of 256 KiB and more."""

_WRITE_SECONDS = 60.0
_LONG_INPUT = "/run/vmlab/input"


class AgentShell:
    """`workloads.contract.Shell` over ``call``, see `agent.AgentCall`. One command runs for each call of `run`.

    `address` is the guest's address for itself; without a network no other guest can reach it.
    """

    def __init__(self, name: str, call: AgentCall, address: str = "127.0.0.1") -> None:
        self._name = name
        self._call = call
        self._address = address
        self._inputs = 0

    @property
    def name(self) -> str:
        """The guest's name in the scenario."""
        return self._name

    @property
    def address(self) -> str:
        """The loopback's, unless another was given."""
        return self._address

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        """Run a command to its end; see `workloads.contract.Shell.run`."""
        given = (stdin or "").encode()
        if len(given) > _PIECE:
            completed = await self._run_with_file(argv, given, deadline)
        else:
            completed = await self._finished(argv, given, deadline)
        if check and completed.status != 0:
            raise GuestError(f"{self._name}: {describe_failure(argv, completed)}")
        return completed

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file; see `workloads.contract.Shell.write`."""
        folder, quoted = shlex.quote(str(PurePosixPath(path).parent)), shlex.quote(path)
        pieces = [content[at : at + _PIECE] for at in range(0, len(content), _PIECE)] or [b""]
        for number, piece in enumerate(pieces):
            script = f"cat >> {quoted}" if number else f"mkdir -p {folder} && cat > {quoted} && chmod {mode:o} {quoted}"
            completed = await self._finished(["/bin/sh", "-c", script], piece, _WRITE_SECONDS)
            if completed.status != 0:
                raise GuestError(f"{self._name}: cannot write {path}: {completed.stderr.strip()}")

    async def _run_with_file(self, argv: Sequence[str], given: bytes, deadline: float) -> Completed:
        self._inputs += 1
        path = f"{_LONG_INPUT}.{self._inputs}"
        await self.write(path, given, mode=0o600)
        script = f"exec < {path}; rm {path}; exec {shlex.join(argv)}"
        return await self._finished(["/bin/sh", "-c", script], b"", deadline)

    async def _finished(self, argv: Sequence[str], stdin: bytes, deadline: float) -> Completed:
        try:
            return await run_program(self._call, argv, stdin, deadline)
        except GuestError as error:
            raise GuestError(f"{self._name}: {error}") from error
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f"{self._name}: {error}") from error
