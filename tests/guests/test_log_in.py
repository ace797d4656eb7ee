"""Guests of added images over SSH, with a real server: the user's key, and commands that sudo makes root's."""

from __future__ import annotations

import asyncio
import contextlib
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
async def _guest(
    key: asyncssh.SSHKey, patch: pytest.MonkeyPatch, host_key: asyncssh.SSHKey | None = None
) -> AsyncIterator[None]:
    """A server on a port of its own that lets in who has `key`, with `host_key` or one that nobody knows."""
    server = await asyncssh.listen(
        LOOPBACK,
        0,
        server_host_keys=[host_key or asyncssh.generate_private_key("ssh-rsa")],
        authorized_client_keys=asyncssh.import_authorized_keys(key.export_public_key().decode()),
        process_factory=_answer,
    )
    connect = asyncssh.connect
    patch.setattr(asyncssh, "connect", lambda host, **given: connect(host, server.get_port(), **given))
    try:
        yield
    finally:
        patch.setattr(asyncssh, "connect", connect)
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


async def test_a_guest_that_shows_another_host_key_than_it_was_given_is_left_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, own, swapped = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(3))
    async with _guest(key, monkeypatch, swapped):
        with pytest.raises(GuestError, match="key"):
            await SshShell.connect("web", LOOPBACK, key=key, host_key=own, deadline=SOON)
    async with _guest(key, monkeypatch, own):
        shell = await SshShell.connect("web", LOOPBACK, key=key, host_key=own, deadline=SOON)
        assert (await shell.run(["true"])).status == 0
        await shell.close()


async def test_a_banner_that_is_hostile_ends_at_the_deadline_and_names_the_guest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hostile(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                writer.write(b"\x1b]0;mine\x07" * 10_000 + b"\n")
                await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_server(hostile, LOOPBACK, 0)
    port, connect = server.sockets[0].getsockname()[1], asyncssh.connect
    monkeypatch.setattr(asyncssh, "connect", lambda host, **given: connect(host, port, **given))
    key = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises((GuestError, DeadlineExceeded)) as raised:
        await SshShell.connect("web", LOOPBACK, key=key, host_key=key, deadline=2.0)
    assert "web" in str(raised.value) and len(str(raised.value)) < 1000
    server.close()
    await server.wait_closed()


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
    assert command.startswith("sudo -n -H -- sh -c 'mkdir -p ") and command.endswith(" sh /etc/hosts 644")


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
