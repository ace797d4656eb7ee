"""A line over real SSH on loopback: the host's key is pinned, and an image goes to the program there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from vmlab import __version__
from vmlab.fleet.hosts_file import HostEntry
from vmlab.fleet.link import HostLink
from vmlab.model.errors import CommandFailed, RefusedError


@dataclass
class Server:
    """A host that greets, and that keeps what it is sent in `got` and says that it is the image `kept`."""

    entry: HostEntry
    kept: str = "abc"
    got: bytearray = field(default_factory=bytearray)

    async def answer(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """One command."""
        if process.command is not None and process.command.endswith("hosts serve"):
            await process.stdin.readline()
            hello = f'{{"protocol": 1, "vmlab": "{__version__}", "root": true}}'
            process.stdout.write(f'{{"id": 1, "ok": true, "answer": {hello}}}\n'.encode())
            await process.stdin.read()
        else:
            while data := await process.stdin.read(2**16):
                self.got += data
            process.stdout.write(self.kept.encode() + b"\n")
        process.exit(0)

    def pin(self, key: asyncssh.SSHKey) -> None:
        """Have `key` as the one that the controller knows."""
        where = f"[127.0.0.1]:{self.entry.port}"
        self.entry.known_hosts.write_text(f"{where} {key.export_public_key('openssh').decode()}")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """One that the controller knows."""
    key, own = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    key.write_private_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o600)
    key.write_public_key(tmp_path / "authorized")
    found: list[Server] = []

    async def answer(process: Any) -> None:
        await found[0].answer(process)

    listening = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[own],
        authorized_client_keys=str(tmp_path / "authorized"),
        process_factory=answer,
        encoding=None,
    )
    entry = HostEntry(
        address="127.0.0.1", port=listening.get_port(), key=tmp_path / "key", known_hosts=tmp_path / "known"
    )
    found.append(Server(entry))
    found[0].pin(own)
    yield found[0]
    listening.close()
    await listening.wait_closed()


async def test_another_key_is_refused_in_one_line(server: Server) -> None:
    """Nothing is sent to such a host."""
    server.pin(asyncssh.generate_private_key("ssh-ed25519"))
    with pytest.raises(RefusedError, match="host hv1: its key is not the one in") as raised:
        await HostLink.open("hv1", server.entry)
    assert "\n" not in str(raised.value)


async def test_an_image_is_sent_whole(server: Server, tmp_path: Path) -> None:
    """And the host must name it."""
    (tmp_path / "image").write_bytes(bytes(range(256)) * 4096)
    link = await HostLink.open("hv1", server.entry)
    try:
        await link.send("image", "abc", tmp_path / "image")
        assert server.got == (tmp_path / "image").read_bytes()
        server.kept = "another"
        with pytest.raises(CommandFailed, match="did not say that it kept image abc"):
            await link.send("image", "abc", tmp_path / "image")
    finally:
        await link.close()
