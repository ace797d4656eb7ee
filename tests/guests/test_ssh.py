"""A guest's connection, with a real SSH server on the loopback that can fall silent, as a guest does that has died."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import asyncssh
import pytest

from vmlab.guests import ssh
from vmlab.guests.held_client import HeldClient
from vmlab.guests.ssh import SshShell
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.workloads.workload_steps import Client

SOON = 60.0
LOOPBACK = "127.0.0.1"


class Wire:
    """Passes bytes on between client and server until it is cut: then it is silent, and closes nothing.

    `at_the_cut` is called then.
    """

    def __init__(self, port: int, at_the_cut: Callable[[], object]) -> None:
        self._port = port
        self._at_the_cut = at_the_cut
        self._passing: list[asyncio.Task[None]] = []
        self._ends: list[asyncio.StreamWriter] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        beyond_reader, beyond_writer = await asyncio.open_connection(LOOPBACK, self._port)
        self._ends += [writer, beyond_writer]
        for source, sink in ((reader, beyond_writer), (beyond_reader, writer)):
            self._passing.append(asyncio.ensure_future(self._pass(source, sink)))

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(65536):
                sink.write(chunk)

    def cut(self) -> None:
        self._at_the_cut()
        for task in self._passing:
            task.cancel()

    async def close(self) -> None:
        self.cut()
        await asyncio.gather(*self._passing, return_exceptions=True)
        for end in self._ends:
            end.transport.abort()


async def serve(process: asyncssh.SSHServerProcess[str]) -> None:
    """Every program is ``cat``."""
    with contextlib.suppress(asyncssh.Error):
        async for line in process.stdin:
            process.stdout.write(line)
    process.exit(0)


@pytest.fixture
async def connected(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[SshShell, Wire]]:
    """A shell with a server behind a wire. Its deadlines are short from the moment when the wire is cut."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    known = asyncssh.import_authorized_keys(key.export_public_key().decode())
    server = await asyncssh.listen(
        LOOPBACK, 0, server_host_keys=[key], authorized_client_keys=known, process_factory=serve
    )
    wire = Wire(server.get_port(), lambda: have_short_deadlines(monkeypatch))
    front = await asyncio.start_server(wire.accept, LOOPBACK, 0)
    connection = await asyncssh.connect(
        LOOPBACK,
        front.sockets[0].getsockname()[1],
        username="root",
        client_keys=[key],
        known_hosts=([key.convert_to_public()], [], []),
        config=None,
        agent_path=None,
        **ssh._KEEP_ALIVE,
    )
    yield SshShell("web", LOOPBACK, connection), wire
    connection.abort()
    await wire.close()
    front.close()
    server.close()
    await server.wait_closed()


def have_short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LAUNCH_SECONDS", "SEND_SECONDS", "CLOSE_SECONDS"):
        monkeypatch.setattr(ssh, name, 0.3)


async def test_a_program_on_a_silent_guest_does_not_start_for_ever(connected: tuple[SshShell, Wire]) -> None:
    shell, wire = connected
    wire.cut()
    async with asyncio.timeout(SOON):
        with pytest.raises(DeadlineExceeded, match=r"web: python3 did not start within 0\.3 s"):
            await shell.launch(["python3"])


async def test_a_channel_to_a_silent_guest_is_given_up(connected: tuple[SshShell, Wire]) -> None:
    shell, wire = connected
    channel = await shell.launch(["cat"])
    await channel.send("here")
    assert await channel.receive() == "here"
    wire.cut()
    async with asyncio.timeout(SOON):
        with pytest.raises(DeadlineExceeded, match=r"web: a channel did not close within 0\.3 s"):
            await channel.close()


async def test_a_line_that_a_silent_guest_does_not_take_is_given_up(connected: tuple[SshShell, Wire]) -> None:
    shell, wire = connected
    channel = await shell.launch(["cat"])
    wire.cut()
    async with asyncio.timeout(SOON):
        with pytest.raises(DeadlineExceeded, match="web: a line was not taken"):
            for _ in range(100):
                await channel.send("x" * 2**20)


async def test_a_client_that_was_not_ready_is_told_and_not_the_channel_that_does_not_close(
    connected: tuple[SshShell, Wire],
) -> None:
    shell, wire = connected
    launch = shell.launch

    async def launched(argv: list[str]) -> object:
        channel = await launch(argv)
        wire.cut()
        return channel

    shell.launch = launched  # type: ignore[assignment,method-assign]
    async with asyncio.timeout(SOON):
        with pytest.raises(DeadlineExceeded, match="client true was not ready within 1 s"):
            await HeldClient.hold(shell, shell, Client(("true",), 1), 1)


async def test_who_waits_hears_of_a_connection_that_is_dropped(connected: tuple[SshShell, Wire]) -> None:
    shell, wire = connected
    channel = await shell.launch(["cat"])
    wire.cut()
    waiting = asyncio.ensure_future(channel.receive())
    await asyncio.sleep(0.05)
    await shell.close()
    async with asyncio.timeout(SOON):
        assert await waiting == "", "the end of the stream"
        await channel.close()


class TestKeepAlive:
    @pytest.fixture(autouse=True)
    def often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(ssh._KEEP_ALIVE, "keepalive_interval", 0.2)

    async def test_a_guest_that_answers_nothing_any_more_is_lost_in_the_end(
        self, connected: tuple[SshShell, Wire]
    ) -> None:
        shell, wire = connected
        channel = await shell.launch(["cat"])
        wire.cut()
        async with asyncio.timeout(SOON):
            with pytest.raises(GuestError, match="web: connection lost"):
                await channel.receive()


async def test_a_commands_input_and_output_pass_and_have_an_end(
    connected: tuple[SshShell, Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, _ = connected
    # Few lines, as the server of these tests sends a packet for each.
    text = ("0123456789" * 100 + "\n") * 1_000
    assert (await shell.run(["cat"], stdin=text)).stdout == text
    monkeypatch.setattr("vmlab.guests.channel.MOST_PRINTED", 100_000)
    with pytest.raises(GuestError, match=r"web: cat printed more than 97\.7 KiB"):
        await shell.run(["cat"], stdin=text)
    assert (await shell.run(["cat"], stdin="again\n")).stdout == "again\n"
