"""One SSH connection to a guest, kept open; every command has a deadline by the clock."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import asyncssh

from vmlab.guests.channel import Channel
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.workloads.contract import Completed

# Cheap to compute under emulation, and what the image's sshd offers first.
_ALGORITHMS: dict[str, Any] = {
    "kex_algs": ["curve25519-sha256"],
    "encryption_algs": ["chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com", "aes128-ctr"],
    "server_host_key_algs": ["ssh-ed25519"],
    "compression_algs": None,
}


class SshChannel:
    """A remote program's standard input and output as lines; see `channel.Channel`."""

    def __init__(self, process: asyncssh.SSHClientProcess[str], name: str) -> None:
        self._process = process
        self._name = name

    async def send(self, line: str) -> None:
        """Write one line. Raises GuestError when the guest has gone."""
        try:
            self._process.stdin.write(line + "\n")
            await self._process.stdin.drain()
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: connection lost: {error}") from error

    async def receive(self) -> str:
        """Next line; empty at the end of the stream. Raises GuestError when the guest has gone."""
        try:
            return (await self._process.stdout.readline()).rstrip("\n")
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: connection lost: {error}") from error

    async def close(self) -> None:
        """Close standard input, which ends the program, and the channel."""
        self._process.close()
        await self._process.wait_closed()


class SshShell:
    """A guest's shell, as `workloads.contract.Shell` describes it."""

    def __init__(self, name: str, address: str, connection: asyncssh.SSHClientConnection) -> None:
        self._name = name
        self._address = address
        self._connection = connection

    @property
    def name(self) -> str:
        """The guest's name in the scenario."""
        return self._name

    @property
    def address(self) -> str:
        """IPv4 address on the lab's bridge."""
        return self._address

    @classmethod
    async def connect(
        cls, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> SshShell:
        """Connect as root; only `host_key` is accepted. Retries until `deadline` seconds are over.

        Raises DeadlineExceeded, or GuestError at once when the guest shows another host key.
        """
        pinned = asyncssh.import_public_key(host_key.export_public_key("openssh"))
        last = "no answer"
        try:
            async with asyncio.timeout(deadline):
                while True:
                    try:
                        return cls(name, address, await _open(address, key, pinned))
                    except asyncssh.HostKeyNotVerifiable as error:
                        raise GuestError(f"{name}: another machine answers at {address}: {error}") from error
                    except (OSError, asyncssh.Error) as error:
                        last = str(error)
                        await asyncio.sleep(0.1)
        except TimeoutError as error:
            raise DeadlineExceeded(f"{name}: SSH did not answer within {deadline:.0f} s: {last}") from error

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = 120.0, check: bool = True
    ) -> Completed:
        """Run a command to its end; see `workloads.contract.Shell.run`."""
        try:
            async with asyncio.timeout(deadline):
                result = await self._connection.run(
                    shlex.join(argv), input=stdin if stdin is not None else "", encoding="utf-8", errors="replace"
                )
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._name}: {argv[0]} took longer than {deadline:.0f} s") from error
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: {argv[0]}: connection lost: {error}") from error
        completed = Completed(_status(result), str(result.stdout or ""), str(result.stderr or ""))
        if check and completed.status != 0:
            raise GuestError(f"{self._name}: {describe_failure(argv, completed)}")
        return completed

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file; see `workloads.contract.Shell.write`."""
        folder = shlex.quote(str(PurePosixPath(path).parent))
        quoted = shlex.quote(path)
        command = f"mkdir -p {folder} && cat > {quoted} && chmod {mode:o} {quoted}"
        try:
            async with asyncio.timeout(60):
                result = await self._connection.run(command, input=content, encoding=None)
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._name}: writing {path} took longer than 60 s") from error
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: writing {path}: connection lost: {error}") from error
        if _status(result) != 0:
            raise GuestError(f"{self._name}: cannot write {path}: {result.stderr!r}")

    async def launch(self, argv: list[str]) -> Channel:
        """Start a program and stay connected with it."""
        try:
            process = await self._connection.create_process(
                shlex.join(argv), encoding="utf-8", errors="replace", stderr=asyncssh.DEVNULL
            )
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: cannot start {argv[0]}: {error}") from error
        return SshChannel(process, self._name)

    async def close(self) -> None:
        """Drop the connection at once; the guest is about to go."""
        self._connection.abort()


async def _open(address: str, key: asyncssh.SSHKey, pinned: asyncssh.SSHKey) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        address,
        username="root",
        client_keys=[key],
        known_hosts=([pinned], [], []),
        config=None,
        agent_path=None,
        preferred_auth=["publickey"],
        connect_timeout=20,
        login_timeout=60,
        keepalive_interval=0,
        **_ALGORITHMS,
    )


def _status(result: asyncssh.SSHCompletedProcess) -> int:
    """Exit status as a shell tells it: 128 + signal, or 255 where the guest told nothing."""
    return 255 if result.returncode is None else result.returncode


def describe_failure(argv: Sequence[str], completed: Completed) -> str:
    """One line: the command, its status and the last thing that it said."""
    said = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    tail = f": {said[-1][:300]}" if said else ""
    return f"{shlex.join(argv)[:120]} exited with {completed.status}{tail}"
