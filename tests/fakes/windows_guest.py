"""OpenSSH of a guest with Windows, as far as it can be had without one: SFTP over a folder, and a given cmd.exe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import asyncssh

from vmlab.guests.windows_shell import WindowsShell

LOOPBACK = "127.0.0.1"
SOON = 60.0
Cmd = Callable[[str, "asyncssh.SSHServerProcess[bytes]"], Awaitable[int]]
"""Runs a command line as cmd.exe does and prints to the process; its exit status."""


@asynccontextmanager
async def windows_guest(folder: Path, cmd: Cmd) -> AsyncIterator[WindowsShell]:
    """A shell to a server whose drive ``C:`` is `folder`/C:, and where `cmd` runs the commands."""
    (folder / "C:").mkdir(exist_ok=True)
    key = asyncssh.generate_private_key("ssh-ed25519")

    async def run(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.exit(await cmd(process.command or "", process))

    server = await asyncssh.listen(
        LOOPBACK,
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        authorized_client_keys=asyncssh.import_authorized_keys(key.export_public_key().decode()),
        process_factory=run,
        sftp_factory=partial(asyncssh.SFTPServer, chroot=str(folder).encode()),
        encoding=None,
    )
    connection = await asyncssh.connect(
        LOOPBACK, server.get_port(), username="Administrator", client_keys=[key], known_hosts=None, config=None
    )
    try:
        yield WindowsShell("win", LOOPBACK, connection)
    finally:
        connection.abort()
        server.close()
        await server.wait_closed()


def under_wine(wine: Sequence[str], environment: dict[str, str]) -> Cmd:
    """Wine's cmd.exe, started as OpenSSH for Windows starts that of Windows: with the whole line as one word."""

    async def run(line: str, process: asyncssh.SSHServerProcess[bytes]) -> int:
        command = await asyncio.create_subprocess_exec(
            *wine,
            "cmd.exe",
            "/c",
            line,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        assert command.stdout is not None and command.stderr is not None

        async def relay(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
            while piece := await source.read(65536):
                sink.write(piece)

        await asyncio.gather(relay(command.stdout, process.stdout), relay(command.stderr, process.stderr))
        return await command.wait()

    return run
