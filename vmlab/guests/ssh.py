"""One SSH connection to a guest, kept open; every command has a deadline by the clock."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import asyncssh

from vmlab.guests.channel import Channel
from vmlab.model.concurrency import run_all
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED
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
_SUDO = ("sudo", "-n", "-H", "--")
_LAUNCH_SECONDS = 60.0
_SEND_SECONDS = 30.0
_CLOSE_SECONDS = 5.0
_PIECE = 65536


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

    def __init__(
        self,
        name: str,
        address: str,
        connection: asyncssh.SSHClientConnection,
        as_root: tuple[str, ...] = (),
    ) -> None:
        """`as_root` are the words before a command that make it root's; none for a connection that is root's own."""
        self._name = name
        self._address = address
        self._connection = connection
        self._as_root = as_root

    @property
    def name(self) -> str:
        """The guest's name in the scenario."""
        return self._name

    @property
    def address(self) -> str:
        """Its own IPv4 address in the lab's network."""
        return self._address

    @classmethod
    async def connect(
        cls, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> SshShell:
        """Connect as root; only `host_key` is accepted. Retries until `deadline` seconds are over.

        Raises DeadlineExceeded, or GuestError at once when the guest shows another host key.
        """
        pinned = asyncssh.import_public_key(host_key.export_public_key("openssh"))
        options = {"known_hosts": ([pinned], [], []), **_ALGORITHMS}
        return cls(name, address, await opened_connection(name, address, "root", key, options, deadline))

    @classmethod
    async def log_in(cls, name: str, address: str, *, user: str, key: asyncssh.SSHKey, deadline: float) -> SshShell:
        """Connect to a guest of an added image as `user`, whose commands become root's by sudo.

        It has the host key that it booted with, which nobody knows; on the lab's network no one else can answer.
        Retries until `deadline` seconds are over. Raises DeadlineExceeded, and GuestError where it lets nobody in with
        this key until then.
        """
        connection = await opened_connection(name, address, user, key, {"known_hosts": None}, deadline)
        return cls(name, address, connection, () if user == "root" else _SUDO)

    def command_line(self, argv: Sequence[str]) -> str:
        """The words as the guest's own shell reads them."""
        return shlex.join([*self._as_root, *argv])

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        """Run a command to its end; see `workloads.contract.Shell.run`."""
        try:
            async with asyncio.timeout(deadline):
                process = await self._connection.create_process(
                    self.command_line(argv), encoding="utf-8", errors="replace"
                )
                async with process:
                    out, err = await self._communicated(process, stdin or "", argv[0])
                    await process.wait_closed()
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._name}: {argv[0]} took longer than {deadline:.0f} s") from error
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: {argv[0]}: connection lost: {error}") from error
        completed = Completed(_status(process), out, err)
        if check and completed.status != 0:
            raise GuestError(f"{self._name}: {describe_failure(argv, completed)}")
        return completed

    async def _communicated(self, process: asyncssh.SSHClientProcess[str], stdin: str, name: str) -> tuple[str, str]:
        """What the command printed. Raises GuestError for more than `MOST_PRINTED`, and then hears no more of it."""

        async def take(of: asyncssh.SSHReader[str]) -> str:
            pieces, held = list[str](), 0
            while piece := await of.read(_PIECE):
                pieces.append(piece)
                held += len(piece)
                if held > MOST_PRINTED:
                    raise GuestError(f"{self._name}: {name} printed more than {format_bytes(MOST_PRINTED)}")
            return "".join(pieces)

        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(stdin)
            process.stdin.write_eof()
        try:
            out, err = await run_all([take(process.stdout), take(process.stderr)])
        except BaseException:
            process.channel.abort()
            raise
        return out, err

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file; see `workloads.contract.Shell.write`."""
        folder = shlex.quote(str(PurePosixPath(path).parent))
        quoted = shlex.quote(path)
        script = f"mkdir -p {folder} && cat > {quoted} && chmod {mode:o} {quoted}"
        command = shlex.join([*self._as_root, "sh", "-c", script]) if self._as_root else script
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
                    self.command_line(argv), encoding="utf-8", errors="replace", stderr=asyncssh.DEVNULL
                )
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._name}: {argv[0]} did not start within {_LAUNCH_SECONDS:g} s") from error
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self._name}: cannot start {argv[0]}: {error}") from error
        return SshChannel(process, self._name)

    async def close(self) -> None:
        """Drop the connection at once; the guest is about to be destroyed."""
        self._connection.abort()


async def opened_connection(
    name: str, address: str, user: str, key: asyncssh.SSHKey, options: Mapping[str, Any], deadline: float
) -> asyncssh.SSHClientConnection:
    """A connection, tried again until there is one. Raises DeadlineExceeded and GuestError."""
    last: Exception | None = None
    try:
        async with asyncio.timeout(deadline):
            while True:
                try:
                    return await _open(address, user, key, options)
                except asyncssh.HostKeyNotVerifiable as error:
                    raise GuestError(f"{name}: another machine answers at {address}: {error}") from error
                except (OSError, asyncssh.Error) as error:
                    last = error
                    await asyncio.sleep(0.1)
    except TimeoutError as error:
        if isinstance(last, asyncssh.PermissionDenied):
            raise GuestError(f"{name}: it does not let user {user} in with the key that was given") from error
        why = last or "no answer"
        raise DeadlineExceeded(f"{name}: SSH did not answer within {deadline:.0f} s: {why}") from error


async def _open(
    address: str, user: str, key: asyncssh.SSHKey, options: Mapping[str, Any]
) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        address,
        username=user,
        client_keys=[key],
        config=None,
        agent_path=None,
        preferred_auth=["publickey"],
        connect_timeout=20,
        login_timeout=60,
        **_KEEP_ALIVE,
        **options,
    )


def _status(result: asyncssh.SSHCompletedProcess | asyncssh.SSHClientProcess[str]) -> int:
    """Exit status as a shell gives it: 128 + signal, or 255 where the guest sent none."""
    return 255 if result.returncode is None else result.returncode


def describe_failure(argv: Sequence[str], completed: Completed) -> str:
    """One line: the command, its status and the last line that it printed, or the last that says "error"."""
    lines = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    errors = [line for line in lines if "error" in line.lower()]
    tail = f": {(errors or lines)[-1][:300]}" if lines else ""
    return f"{shlex.join(argv)[:120]} exited with {completed.status}{tail}"


def _text(output: bytes | str | None) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""
