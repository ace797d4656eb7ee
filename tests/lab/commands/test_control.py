"""Commands over the runner's socket."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.lab.answering_run import say
from vmlab.lab.commands.command_server import ControlServer
from vmlab.lab.commands.verbs import (
    CallOff,
    ChangeComing,
    ChangeRunning,
    Keep,
    ListComing,
    Release,
    StartAt,
    Stop,
    Verb,
)
from vmlab.model.errors import CommandFailed, RefusedError, UsageError, VmlabError

REFUSALS = {"misuse": UsageError, "refuse": RefusedError, "fail": CommandFailed}


async def answer(verb: Verb) -> dict[str, Any]:
    if verb.origin in REFUSALS:
        raise REFUSALS[verb.origin]("not now")
    return {"command": verb.command, **verb.said()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


async def ask(path: Path, command: str, **arguments: Any) -> dict[str, Any]:
    return await asyncio.to_thread(say(command, **arguments).send, path)


async def test_a_command_arrives_with_its_arguments_and_is_answered(place: Path) -> None:
    server = ControlServer(place, answer)
    await server.open()
    said = {"command": "stop", "origin": "test", "signal": "SIGINT"}
    assert await ask(place, "stop", origin="test") == {"ok": True, **said}
    await server.close()
    assert not place.exists()


@pytest.mark.parametrize("origin", list(REFUSALS))
async def test_a_refusal_is_the_runners_own_words_and_keeps_its_exit_code(origin: str, place: Path) -> None:
    server = ControlServer(place, answer)
    await server.open()
    with pytest.raises(VmlabError, match="not now") as raised:
        await ask(place, "stop", origin=origin)
    assert type(raised.value) is REFUSALS[origin]
    await server.close()


_AS_ANOTHER = """
import os, socket, sys
os.setresuid(65534, 65534, 65534)
with socket.socket(socket.AF_UNIX) as one:
    one.connect(sys.argv[1])
    one.sendall(b'{"command": "stop"}\\n')
    print(one.makefile().readline())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="to be another user needs root")
async def test_the_socket_is_its_users_alone_and_who_connects_is_asked_of_the_kernel() -> None:
    heard: list[Verb] = []

    async def hear(verb: Verb) -> dict[str, Any]:
        heard.append(verb)
        return {}

    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        place = Path(folder) / "control.sock"
        server = ControlServer(place, hear)
        await server.open()
        assert place.stat().st_mode & 0o777 == 0o600
        # Were its mode or that of its folder ever wrong, another user would still be refused.
        Path(folder).chmod(0o755)
        place.chmod(0o666)
        argv = [sys.executable, "-I", "-S", "-c", _AS_ANOTHER, str(place)]
        asked = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, timeout=120)
        await server.close()
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["ok"] is False and "user 65534" in asked.stdout
    assert heard == []


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


@pytest.mark.parametrize(
    "verb",
    [
        Stop(origin="test", signal="SIGTERM"),
        Release(),
        Release(cell=3, together=True),
        Keep(),
        StartAt(cell=0, mono=12.5),
        CallOff(cell=2, reason="host hv2 failed"),
        ListComing(),
        ChangeComing(cell=2, skip=True),
        ChangeComing(cache="none", tiles=0),
        ChangeRunning(ksm="on"),
        ChangeRunning(end=True),
    ],
)
async def test_every_verb_arrives_as_it_was_said(place: Path, verb: Verb) -> None:
    heard: list[Verb] = []

    async def hear(verb: Verb) -> dict[str, Any]:
        heard.append(verb)
        return {}

    server = ControlServer(place, hear)
    await server.open()
    assert await asyncio.to_thread(verb.send, place) == {"ok": True}
    await server.close()
    assert heard == [verb]


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("pause", {}, "this runner has no command 'pause'"),
        ("set now", {"cache": "none"}, "this runner has no command 'set now'"),
        ("x" * 60_000, {}, "this runner has no command 'xxx"),
        ("set", {"caches": "none"}, "set takes no 'caches'"),
        ("set", {"end": True}, "set takes no 'end'"),
        ("set", {"cell": True, "skip": True}, "cell cannot be True"),
        ("set", {"cell": "2", "skip": True}, "cell cannot be '2'"),
        ("set", {"cache": ["none"]}, r"cache cannot be \['none'\]"),
        ("set", {"tiles": "two", "now": True}, "tiles cannot be 'two'"),
        ("set", {"now": 1, "cache": "none"}, "now cannot be 1"),
        ("stop", {"signal": "SIGKILL"}, "signal cannot be 'SIGKILL'"),
        ("start", {"cell": 1, "mono": 0.0}, "mono cannot be 0.0"),
        ("start", {"cell": 1}, "mono is missing"),
        ("call-off", {"cell": 1, "reason": "x" * 1001}, "reason cannot be 'xxx"),
        ("stop", {"origin": None}, "origin cannot be None"),
    ],
)
async def test_a_malformed_command_is_refused_in_one_line_and_the_next_is_taken(
    place: Path, command: str, arguments: dict[str, Any], words: str
) -> None:
    server = ControlServer(place, answer)
    await server.open()
    with pytest.raises(UsageError, match=f"^.*{words}.*$") as caught:
        await ask(place, command, **arguments)
    assert len(caught.value.lines()) == 1 and len(str(caught.value)) < 200
    assert (await ask(place, "stop"))["ok"]
    await server.close()


async def test_nobody_listening_is_one_clear_line(place: Path) -> None:
    with pytest.raises(UsageError, match="does not answer"):
        say("stop").send(place)
