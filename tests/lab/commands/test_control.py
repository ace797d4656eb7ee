"""Commands over the runner's socket."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from vmlab.lab.commands.command_socket import ControlServer, send_command
from vmlab.model.errors import CommandFailed, RefusedError, UsageError, VmlabError

REFUSALS = {"misuse": UsageError, "refuse": RefusedError, "fail": CommandFailed}


async def answer(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if command in REFUSALS:
        raise REFUSALS[command]("not now")
    return {"command": command, **arguments}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


async def ask(path: Path, command: str, **arguments: Any) -> dict[str, Any]:
    return await asyncio.to_thread(lambda: send_command(path, command, **arguments))


async def test_a_command_arrives_with_its_arguments_and_is_answered(place: Path) -> None:
    server = ControlServer(place, answer)
    await server.open()
    assert await ask(place, "stop", origin="test") == {"ok": True, "command": "stop", "origin": "test"}
    await server.close()
    assert not place.exists()


@pytest.mark.parametrize("command", list(REFUSALS))
async def test_a_refusal_is_the_runners_own_words_and_keeps_its_exit_code(command: str, place: Path) -> None:
    server = ControlServer(place, answer)
    await server.open()
    with pytest.raises(VmlabError, match="not now") as raised:
        await ask(place, command)
    assert type(raised.value) is REFUSALS[command]
    await server.close()


NESTED = [b"[" * 60_000 + b"\n", b'{"a":' * 10_000 + b"\n"]


@pytest.mark.parametrize(
    "line", [b"\n", b"[]\n", b"null\n", b"{}\n", b'{"command": \n', b"\xff\xfe\n", *NESTED], ids=range(8)
)
async def test_nonsense_gets_an_answer_and_harms_nothing(place: Path, line: bytes) -> None:
    server = ControlServer(place, answer)
    await server.open()

    def send_raw() -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(place))
            connection.sendall(line)
            return connection.recv(4096)

    assert b'"ok": false' in await asyncio.to_thread(send_raw)
    assert (await ask(place, "stop"))["ok"]
    await server.close()


async def test_nobody_listening_is_one_clear_line(place: Path) -> None:
    with pytest.raises(UsageError, match="does not answer"):
        send_command(place, "stop")
