"""The console in a browser: who gets it, what a page is made of, and that nothing is left when the server ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from tests.cli.called import ended
from tests.processes import children
from tests.waiting import until
from vmlab.cli.serving import server as serving
from vmlab.cli.serving.server import ADDRESS, LARGEST, SMALLEST, USUAL, ConsoleServer, is_allowed, listen

TOKEN = "right-token"
SERVED = (sys.executable, "-m", "vmlab.tui.served")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))


@pytest.mark.parametrize("host", ["127.0.0.1:8640", "localhost:9000", "localhost"])
def test_a_browser_on_this_host_or_behind_a_forwarded_port_is_served(host: str) -> None:
    assert is_allowed(f"/{TOKEN}/", {"Host": host}, TOKEN, is_socket=False)
    assert is_allowed(f"/{TOKEN}/socket", {"Host": host, "Origin": f"http://{host}"}, TOKEN, is_socket=True)


@pytest.mark.parametrize(
    ("path", "headers", "is_socket"),
    [
        ("/", {"Host": "127.0.0.1:1"}, False),
        ("/wrong/", {"Host": "127.0.0.1:1"}, False),
        (f"/{TOKEN}x/", {"Host": "127.0.0.1:1"}, False),
        (f"/{TOKEN[:-1]}/", {"Host": "127.0.0.1:1"}, False),
        (f"//{TOKEN}/", {"Host": "127.0.0.1:1"}, False),
        ("/\udcff/", {"Host": "127.0.0.1:1"}, False),
        (f"/{TOKEN}/", {}, False),
        (f"/{TOKEN}/", {"Host": "evil.example:8640"}, False),
        (f"/{TOKEN}/", {"Host": "127.0.0.1.evil.example"}, False),
        (f"/{TOKEN}/", {"Host": "127.0.0.1:1", "Origin": "http://evil.example"}, False),
        (f"/{TOKEN}/socket", {"Host": "127.0.0.1:1", "Origin": "http://evil.example"}, True),
        (f"/{TOKEN}/socket", {"Host": "127.0.0.1:1", "Origin": "http://127.0.0.1:2"}, True),
        (f"/{TOKEN}/socket", {"Host": "127.0.0.1:1", "Origin": "null"}, True),
        (f"/{TOKEN}/socket", {"Host": "127.0.0.1:1"}, True),
        ("/wrong/socket", {"Host": "127.0.0.1:1", "Origin": "http://127.0.0.1:1"}, True),
    ],
)
def test_whoever_lacks_the_token_or_comes_from_another_page_is_refused(
    path: str, headers: dict[str, str], is_socket: bool
) -> None:
    assert not is_allowed(path, headers, TOKEN, is_socket=is_socket)


def test_each_server_has_a_token_of_its_own_that_nobody_guesses() -> None:
    one, other = ConsoleServer(SERVED, "x").token, ConsoleServer(SERVED, "x").token
    assert one != other
    assert min(len(one), len(other)) >= 32


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        ({}, USUAL),
        ({"width": "120", "height": "40"}, (120, 40)),
        ({"width": 10**9, "height": -1}, (LARGEST[0], SMALLEST[1])),
        ({"width": "x", "height": None}, USUAL),
        ({"width": float("inf"), "height": float("nan")}, USUAL),
    ],
)
def test_a_page_gets_a_size_within_bounds(asked: dict[str, object], size: tuple[int, int]) -> None:
    assert serving._size(asked) == size


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """Where a server of consoles serves, with its token."""
    server = ConsoleServer(SERVED, "vmlab <here>")
    runner, port = await listen(server, 0)
    yield f"http://{ADDRESS}:{port}/{server.token}/"
    await runner.cleanup()


async def test_a_page_fetches_nothing_from_another_host_and_may_not(address: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(address) as answer:
            assert answer.status == 200
            policy, page = answer.headers["Content-Security-Policy"], await answer.text()
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
        host = address.split("/")[2]
        assert set(re.findall(r"\S*//\S+", policy)) == {f"ws://{host};"}
        assert "default-src 'none'" in policy and "unsafe-eval" not in policy
        assert set(re.findall(r"[a-z]+://[^/\"]+", page)) == {f"ws://{host}"}
        named = [name for name in re.findall(r'(?:src|href)="([^"]+)"|url\("([^"]+)"\)', page) for name in name if name]
        assert len(named) == 5
        for name in named:
            if name == "data:,":
                continue
            async with session.get(address + name) as answer:
                assert answer.status == 200, name
                body = await answer.read()
            if name.endswith(".css"):
                assert not re.search(rb"@import|url\(", body)
        assert "<title>vmlab &lt;here&gt;</title>" in page


@pytest.mark.parametrize("name", ["static/../server.py", "static/%2e%2e/server.py", "static/..%2f..%2fserver.py", "x"])
async def test_no_other_file_is_served(address: str, name: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(address + name) as answer:
        assert answer.status in (403, 404)


def raw(port: int, request: bytes) -> bytes:
    """All that comes back for these bytes, until the server closes."""
    with socket.create_connection((ADDRESS, port), 60) as link, contextlib.suppress(ConnectionError):
        link.sendall(request)
        return b"".join(iter(lambda: link.recv(65536), b""))
    return b""


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("/TOKEN/", "[", 403),
        ("/TOKEN/", "127.0.0.1:1; script-src evil", 403),
        ("/TOKEN/", "127.0.0.1:evil", 403),
        ("/TOKEN/", "evil@127.0.0.1", 403),
        ("/TOKEN/", "127.0.0.1\r\nHost: evil", 400),
        ("/TOKEN/", "127.0.0.1:123456", 403),
        ("/TOKEN/static/%00", "127.0.0.1", 404),
        ("/TOKEN/static/evil%0d%0aSet-Cookie:%20a=b", "127.0.0.1", 404),
        ("/TOKEN/static/js/%00textual.js", "127.0.0.1", 404),
        ("/TOKEN/static/" + "evil/" * 1000, "127.0.0.1", 404),
        ("/TOKEN/static//etc/passwd", "127.0.0.1", 404),
        ("/TOKEN/static/%2fetc%2fpasswd", "127.0.0.1", 404),
        ("/TOKEN/static/%ff%fe", "127.0.0.1", 404),
        ("/%ff%fe/evil", "127.0.0.1", 403),
        ("http://[/TOKEN/", "127.0.0.1", 400),
        ("evil", "127.0.0.1", 400),
        ("/TOKEN/socket", "127.0.0.1", 403),
        ("/TOKEN/", "127.0.0.1\r\nX: " + "evil" * 5000, 400),
        ("/TOKEN/", "127.0.0.1\r\n" + "\r\n".join(f"X-{n}: evil" for n in range(3000)), 400),
        ("/TOKEN/", "127.0.0.1\r\nX evil", 400),
        ("/TOKEN/", "127.0.0.1\r\nContent-Length: evil", 400),
    ],
)
async def test_a_request_that_is_none_has_an_answer_without_its_words(
    address: str, capfd: pytest.CaptureFixture[str], target: str, host: str, status: int
) -> None:
    port, token = address.split("/")[2].partition(":")[2], address.split("/")[3]
    request = f"GET {target.replace('TOKEN', token)} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    answer = await asyncio.to_thread(raw, int(port), request.encode("latin-1"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 %d " % status, b"HTTP/1.0 %d " % status)), answer
    assert b"evil" not in head
    # The parser quotes the line that it cannot read, as plain text.
    assert b"evil" not in body or (status == 400 and b"text/plain" in head)
    assert "Traceback" not in capfd.readouterr().err


async def test_without_the_token_there_is_no_page_no_file_and_no_console(address: str) -> None:
    base = address[: address.rindex("/", 0, -1)]
    async with aiohttp.ClientSession() as session:
        for path in ("/", "/x/", "/x/static/js/textual.js", "/static/js/textual.js", "/favicon.ico"):
            async with session.get(base + path) as answer:
                assert answer.status == 403, path
                assert "needs its token" in await answer.text()
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{base}/x/socket", headers={"Origin": base})
        assert refused.value.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{address}socket", headers={"Origin": "http://evil.example"})
        assert refused.value.status == 403
    assert not consoles()


def consoles() -> list[psutil.Process]:
    """The consoles that this process or its children serve."""
    return children("vmlab.tui.served", recursive=True)


async def test_a_page_shows_the_console_which_answers_keys_and_ends_with_the_page(address: str) -> None:
    async with aiohttp.ClientSession() as session:
        origin = address[: address.rindex("/", 0, -1)]
        async with session.ws_connect(f"{address}socket?width=100&height=30", headers={"Origin": origin}) as page:
            # What no page sends is left out, and hurts nobody.
            for nonsense in (
                "[" * 60_000,
                '["ping", ' * 5000,
                "[",
                "1",
                "[]",
                '["resize"]',
                '["resize", 1]',
                '["stdin", 7]',
                '{"a": 1}',
            ):
                await page.send_str(nonsense)
            drawn = b""
            while b"How many guests" not in drawn:
                drawn += (await page.receive(timeout=120)).data
            await page.send_json(["stdin", "X"])
            while b"only watches" not in drawn:
                drawn += (await page.receive(timeout=120)).data
            await page.send_json(["ping", "7"])
            while (message := await page.receive(timeout=120)).type != aiohttp.WSMsgType.TEXT:
                pass
            assert message.json() == ["pong", "7"]
            assert len(consoles()) == 1
        await until(lambda: not consoles(), "the console has ended with its page")


async def test_there_are_so_many_pages_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MOST_CONSOLES", 1)
    server = ConsoleServer((sys.executable, "-c", "input()"), "x")
    runner, port = await listen(server, 0)
    origin = f"http://{ADDRESS}:{port}"
    try:
        async with aiohttp.ClientSession() as session:
            socket_of = f"{origin}/{server.token}/socket"
            async with session.ws_connect(socket_of, headers={"Origin": origin}):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await session.ws_connect(socket_of, headers={"Origin": origin})
                assert refused.value.status == 503
    finally:
        await runner.cleanup()


async def test_a_console_that_does_not_leave_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.cli.serving.server._END_SECONDS", 0.2)
    stubborn = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [2, 15]); signal.pause()"
    server = ConsoleServer((sys.executable, "-c", stubborn), "x")
    runner, port = await listen(server, 0)
    origin = f"http://{ADDRESS}:{port}"

    def living() -> list[psutil.Process]:
        # Without a command line it has ended, and is not yet waited for.
        return [one for one in psutil.process_iter(["ppid", "cmdline"]) if is_stubborn(one.info)]

    def is_stubborn(told: dict[str, Any]) -> bool:
        return told["ppid"] == os.getpid() and stubborn in (told["cmdline"] or [])

    try:
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(f"{origin}/{server.token}/socket", headers={"Origin": origin}):
                await until(living, "it runs")
            await until(lambda: not living(), "it is gone")
    finally:
        await runner.cleanup()


def begun(*words: str) -> tuple[subprocess.Popen[str], str]:
    """A server of the command line, and its address."""
    program = [sys.executable, "-m", "vmlab", *words]
    served = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert served.stdout is not None
    return served, served.stdout.readline().strip()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_server_and_consoles(number: signal.Signals, code: int) -> None:
    served, address = await asyncio.to_thread(begun, "serve", "--port", "0")
    with served:
        origin = address[: address.rindex("/", 0, -1)]
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{address}socket", headers={"Origin": origin}) as page,
        ):
            await page.receive(timeout=120)
            await until(consoles, "a console runs")
            served.send_signal(number)
            assert await asyncio.to_thread(served.wait, 120) == code
        assert not consoles()
        assert served.stderr is not None
        assert "pages only watch; Ctrl-C ends it" in served.stderr.read()


async def test_a_console_whose_server_was_killed_leaves(tmp_path: Path) -> None:
    served, address = await asyncio.to_thread(begun, "demo", "--serve", "--port", "0")
    with served:
        origin = address[: address.rindex("/", 0, -1)]
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{address}socket", headers={"Origin": origin}) as page,
        ):
            drawn = b""
            while b"A tile is" not in drawn:
                drawn += (await page.receive(timeout=120)).data
            (console,) = consoles()
            served.kill()
        served.wait()
        await until(lambda: not console.is_running() or console.status() == psutil.STATUS_ZOMBIE, "it has left")


def test_a_port_that_is_taken_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert ended("serve", "--port", str(port)) == 3
    out, err = capfd.readouterr()
    assert out == ""
    why = "Address already in use (--port 0 takes one that is free)"
    assert err == f"vmlab: port {port} of {ADDRESS} cannot be used: {why}\n"


@pytest.mark.parametrize("words", [("serve", "--port", "70000"), ("serve", "x"), ("demo", "--serve", "--list")])
def test_wrong_words_are_refused(words: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(*words) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_without_its_package_it_says_which_extra_it_needs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "vmlab.cli.serving.server")
    monkeypatch.delattr("vmlab.cli.serving.server")
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    assert ended("serve") == 3
    assert capfd.readouterr().err.startswith("vmlab: a console in a browser needs textual-serve (")
