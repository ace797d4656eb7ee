"""One SSH connection to a guest, kept open; every command has a deadline by the clock; and the keys: fresh
ones for each run, to log in and of each host, and users' own.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from vmlab.guests.channel import CLOSE_SECONDS, SEND_SECONDS, Channel, CommandShell, whole_output
from vmlab.model.concurrency import run_all, within
from vmlab.model.errors import DeadlineExceeded, GuestError, UsageError
from vmlab.system.given_file import read_given
from vmlab.workloads.shell import Completed

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


class SshChannel:
    """A remote program's standard input and output as lines; see `channel.Channel`."""

    def __init__(self, process: asyncssh.SSHClientProcess[str], name: str) -> None:
        self._process = process
        self._name = name

    async def send(self, line: str) -> None:
        """Write one line. Raises GuestError when the guest has gone, DeadlineExceeded when it does not read."""
        late = f"{self._name}: a line was not taken within {SEND_SECONDS:g} s"
        with _lost(self._name):
            async with within(SEND_SECONDS, late):
                self._process.stdin.write(line + "\n")
                await self._process.stdin.drain()

    async def receive(self) -> str:
        """Next line; empty at the end of the stream. Raises GuestError when the guest has gone.

        The caller sets the deadline.
        """
        with _lost(self._name):
            return (await self._process.stdout.readline()).rstrip("\n")

    async def close(self) -> None:
        """Close standard input, which ends the program, and the channel. Raises DeadlineExceeded.

        The guest must confirm the end of a channel; a guest that does not answer is not waited for.
        """
        self._process.close()
        try:
            async with within(CLOSE_SECONDS, f"{self._name}: a channel did not close within {CLOSE_SECONDS:g} s"):
                await self._process.wait_closed()
        except DeadlineExceeded:
            self._process.channel.abort()
            raise


@contextlib.contextmanager
def _lost(name: str) -> Iterator[None]:
    """What SSH raises in the block is raised as GuestError."""
    try:
        yield
    except (OSError, asyncssh.Error) as error:
        raise GuestError(f"{name}: connection lost: {error}") from error


class SshShell(CommandShell):
    """A guest's shell over SSH."""

    def __init__(
        self,
        name: str,
        address: str,
        connection: asyncssh.SSHClientConnection,
        as_root: tuple[str, ...] = (),
    ) -> None:
        """`as_root` are the words before a command that make it root's; none for a connection that is root's own."""
        super().__init__(name, address)
        self._connection = connection
        self._as_root = as_root

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

    async def completed(self, argv: Sequence[str], given: bytes, deadline: float, what: str) -> Completed:
        """As `CommandShell` has it."""
        with _lost(f"{self.name}: {what}"):
            async with within(deadline, f"{self.name}: {what} took longer than {deadline:.0f} s"):
                process = await self._connection.create_process(self.command_line(argv), encoding=None)
                async with process:
                    out, err = await self._communicated(process, given, what)
                    await process.wait_closed()
        # 128 and the signal, as a shell gives it, or 255 where the guest sent no status.
        status = 255 if process.returncode is None else process.returncode
        return Completed(status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    async def _communicated(
        self, process: asyncssh.SSHClientProcess[bytes], given: bytes, name: str
    ) -> tuple[bytes, bytes]:
        """What the command printed. Raises GuestError for more than `MOST_PRINTED`, and then hears no more of it."""
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.write_eof()
        try:
            out, err = await run_all(
                [whole_output(of.read, self.name, name) for of in (process.stdout, process.stderr)]
            )
        except BaseException:
            process.channel.abort()
            raise
        return out, err

    async def launch(self, argv: list[str]) -> Channel:
        """Start a program and stay connected with it. Raises GuestError, and DeadlineExceeded after a minute."""
        late = f"{self.name}: {argv[0]} did not start within {_LAUNCH_SECONDS:g} s"
        try:
            async with within(_LAUNCH_SECONDS, late):
                process = await self._connection.create_process(
                    self.command_line(argv), encoding="utf-8", errors="replace", stderr=asyncssh.DEVNULL
                )
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self.name}: cannot start {argv[0]}: {error}") from error
        return SshChannel(process, self.name)

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


_MOST_KEY = 2**16
"""Bytes of the largest private key that is read."""


@dataclass(frozen=True, slots=True)
class RunKeys:
    """The run's client key and the guests' host keys, by guest key. They are kept in memory only."""

    client: asyncssh.SSHKey
    hosts: dict[str, asyncssh.SSHKey]

    @classmethod
    def generate(cls, guests: Iterable[str]) -> RunKeys:
        """Ed25519 for all: quick to check under emulation."""
        keys = cls(client=asyncssh.generate_private_key("ssh-ed25519", comment="vmlab"), hosts={})
        keys.add(guests)
        return keys

    def add(self, guests: Iterable[str]) -> None:
        """Host keys for further guests."""
        self.hosts.update({guest: asyncssh.generate_private_key("ssh-ed25519") for guest in guests})

    def authorized_line(self) -> str:
        """The line for the guests' ``authorized_keys``."""
        return self.client.export_public_key("openssh").decode().strip()

    def host_private(self, guest: str) -> bytes:
        """The private host key of `guest`, in OpenSSH's format."""
        return self.hosts[guest].export_private_key("openssh")


def read_private_key(file: Path) -> bytes:
    """The private key in `file` as it is written there. Raises UsageError for anything else."""
    try:
        content = read_given(file, _MOST_KEY)
        asyncssh.import_private_key(content)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise UsageError(
            f"{file} is no private key without a passphrase: {str(error)[:120] or 'unknown form'}"
        ) from error
    return content
