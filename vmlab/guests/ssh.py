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
from vmlab.workloads.contract import RUN_DEADLINE, Completed

# Cheap to compute under emulation, and the first choice of the image's sshd.
_ALGORITHMS: dict[str, Any] = {
    "kex_algs": ["curve25519-sha256"],
    "encryption_algs": ["chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com", "aes128-ctr"],
    "server_host_key_algs": ["ssh-ed25519"],
    "compression_algs": None,
}
# TCP alone would wait for a silent guest for ever. Each keepalive costs an emulated guest some milliseconds, also
# during a measurement, so one is sent only after a minute without any data; after the third one without an answer the
# connection is lost. A guest that died is found out much sooner, by its QEMU.
_KEEP_ALIVE: dict[str, Any] = {"keepalive_interval": 60, "keepalive_count_max": 3}
_LAUNCH_SECONDS = 60.0
_SEND_SECONDS = 30.0
_CLOSE_SECONDS = 5.0


class SshChannel:
    """A remote program's standard input and output as lines; see `channel.Channel`."""

    def __init__(self, process: asyncssh.SSHClientProcess[str], name: str) -> None:
        self._process = process
        self._name = name

    async def send(self, line: str) -> None:
        """Write one line. Raises GuestError when the guest has gone, DeadlineExceeded when it does not read."""
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                self._process.stdin.write(line + "\n")
                await self._process.stdin.drain()
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._name}: a line was not taken within {_SEND_SECONDS:g} s") from error
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: connection lost: {error}") from error

    async def receive(self) -> str:
        """Next line; empty at the end of the stream. Raises GuestError when the guest has gone.

        The caller sets the deadline.
        """
        try:
            return (await self._process.stdout.readline()).rstrip("\n")
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: connection lost: {error}") from error

    async def close(self) -> None:
        """Close standard input, which ends the program, and the channel. Raises DeadlineExceeded.

        The guest must confirm the end of a channel; a guest that does not answer is not waited for.
        """
        self._process.close()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._process.wait_closed()
        except TimeoutError as error:
            self._process.channel.abort()
            raise DeadlineExceeded(f"{self._name}: a channel did not close within {_CLOSE_SECONDS:g} s") from error


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
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
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
            raise GuestError(f"{self._name}: cannot write {path}: {_text(result.stderr).strip()}")

    async def launch(self, argv: list[str]) -> Channel:
        """Start a program and stay connected with it. Raises GuestError, and DeadlineExceeded after a minute."""
        try:
            async with asyncio.timeout(_LAUNCH_SECONDS):
                process = await self._connection.create_process(
                    shlex.join(argv), encoding="utf-8", errors="replace", stderr=asyncssh.DEVNULL
                )
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._name}: {argv[0]} did not start within {_LAUNCH_SECONDS:g} s") from error
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: cannot start {argv[0]}: {error}") from error
        return SshChannel(process, self._name)

    async def close(self) -> None:
        """Drop the connection at once; the guest is about to be destroyed."""
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
        **_KEEP_ALIVE,
        **_ALGORITHMS,
    )


def _status(result: asyncssh.SSHCompletedProcess) -> int:
    """Exit status as a shell gives it: 128 + signal, or 255 where the guest sent none."""
    return 255 if result.returncode is None else result.returncode


def describe_failure(argv: Sequence[str], completed: Completed) -> str:
    """One line: the command, its status and the last line that it printed."""
    lines = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    tail = f": {lines[-1][:300]}" if lines else ""
    return f"{shlex.join(argv)[:120]} exited with {completed.status}{tail}"


def _text(output: bytes | str | None) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""
