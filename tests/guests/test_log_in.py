"""Guests of added images over SSH, with a real server: the user's key, and commands that sudo makes root's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncssh
import pytest

from vmlab.guests.ssh import SshShell
from vmlab.model.errors import DeadlineExceeded, GuestError

LOOPBACK = "127.0.0.1"
SOON = 60.0


async def _answer(process: asyncssh.SSHServerProcess[str]) -> None:
    """Say who asked, and for what."""
    process.stdout.write(f"{process.get_extra_info('username')}: {process.command}\n")
    process.exit(0)


@asynccontextmanager
async def _guest(key: asyncssh.SSHKey, patch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A server on a port of its own that lets in who has `key`, with a host key that nobody knows."""
    server = await asyncssh.listen(
        LOOPBACK,
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-rsa")],
        authorized_client_keys=asyncssh.import_authorized_keys(key.export_public_key().decode()),
        process_factory=_answer,
    )
    connect = asyncssh.connect
    patch.setattr(asyncssh, "connect", lambda host, **given: connect(host, server.get_port(), **given))
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("user", "words"), [("root", "root: echo 'a b'\n"), ("debian", "debian: sudo -n -H -- echo 'a b'\n")]
)
async def test_commands_are_roots(user: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with _guest(key, monkeypatch):
        shell = await SshShell.log_in("own", LOOPBACK, user=user, key=key, deadline=SOON)
        try:
            assert (await shell.run(["echo", "a b"])).stdout == words
            channel = await shell.launch(["echo", "a b"])
            assert await channel.receive() == words.rstrip()
        finally:
            await shell.close()


async def test_files_are_written_by_root(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(process: asyncssh.SSHServerProcess[str]) -> None:
        asked.append(str(process.command))
        process.exit(0)

    monkeypatch.setattr("tests.guests.test_log_in._answer", answer)
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with _guest(key, monkeypatch):
        shell = await SshShell.log_in("own", LOOPBACK, user="debian", key=key, deadline=SOON)
        try:
            await shell.write("/etc/hosts", b"")
        finally:
            await shell.close()
    (command,) = asked
    assert command.startswith("sudo -n -H -- sh -c 'mkdir -p /etc && cat > /etc/hosts && chmod 644")


async def test_a_key_that_is_not_taken_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    async with _guest(asyncssh.generate_private_key("ssh-ed25519"), monkeypatch):
        refused = 0
        connect = asyncssh.connect

        async def noted(*given: object, **more: object) -> object:
            nonlocal refused
            try:
                return await connect(*given, **more)
            except asyncssh.PermissionDenied:
                refused += 1
                raise

        monkeypatch.setattr(asyncssh, "connect", noted)
        # On a machine that is slow enough, the first deadline is over before the first answer.
        deadline = 1.0
        while True:
            with pytest.raises((GuestError, DeadlineExceeded)) as caught:
                await SshShell.log_in("own", LOOPBACK, user="debian", key=other, deadline=deadline)
            if refused:
                break
            deadline *= 2
    assert str(caught.value) == "own: it does not let user debian in with the key that was given"
