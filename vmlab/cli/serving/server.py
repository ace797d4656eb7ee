"""Pages on loopback for whoever knows the token in their address, and a console process for each page that is open."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import re
import secrets
import shlex
import signal
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import textual_serve
from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler
from aiohttp.web import WebSocketResponse
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from vmlab.model.errors import ExitCode, RefusedError

_END_SECONDS = 5.0
_LOCALE = "C.UTF-8"
"""A page can show every character, whatever the server's terminal can."""


class ConsoleProcess(AppService):
    """Starts `command` and passes on what it draws to `socket`."""

    def __init__(self, command: Sequence[str], socket: WebSocketResponse) -> None:
        # A shell is asked to start it, which makes itself the console.
        super().__init__(
            f"exec {shlex.join(command)}",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=self._over,
            download_manager=DownloadManager(),
        )
        self._socket = socket

    async def _over(self) -> None:
        await self._socket.close()

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment = super()._build_environment(width, height)
        for name in ("NO_COLOR", "VMLAB_ASCII"):
            environment.pop(name, None)
        return environment | {"LC_ALL": _LOCALE}

    async def end(self) -> None:
        """Have the console leave, as `q` does; one that does not is ended. Does nothing where it never began."""
        if self._process is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stop(), _END_SECONDS)
        if self._process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


ADDRESS = "127.0.0.1"
MOST_CONSOLES = 16
"""So many pages may be open at once: each has a console of its own, of some 60 MiB."""
SMALLEST, LARGEST, USUAL = (10, 5), (500, 200), (100, 30)
"""Columns and rows that a page may ask for, and those where it asks for none."""
_HOST = re.compile(rf"({re.escape(ADDRESS)}|localhost)(:[0-9]{{1,5}})?", re.ASCII)
"""How a browser on this host, or at the other end of a forwarded port, calls the server. Any other name may be one that
somebody else's name server points at this host, so that a page of theirs reads ours (DNS rebinding). It is written into
a header and into the page, so it is matched whole."""
_STATIC = Path(textual_serve.__file__).parent / "static"
_MOST_BYTES = 64 * 1024
_CLOSING_SECONDS = 10.0


class ConsoleServer:
    """Serves consoles that `command` opens, with the pages titled `title`."""

    def __init__(self, command: Sequence[str], title: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self._command = command
        self._title = title
        self._sockets: set[web.WebSocketResponse] = set()
        self._handlers: set[asyncio.Task[Any] | None] = set()
        """Those of consoles that are not gone yet."""

    def application(self) -> web.Application:
        """Page, its files and its socket, all below the token."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/{token}/", self._page),
                web.get("/{token}/page.js", self._script),
                web.get("/{token}/socket", self._console),
                web.get("/{token}/static/{name:.+}", self._file),
            ]
        )
        application.on_shutdown.append(self._close)
        application.on_cleanup.append(self._all_gone)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if len(request.headers.getall("Host", [])) != 1:
            raise web.HTTPBadRequest
        if not is_allowed(request.path, request.headers, self.token, is_socket=request.path.endswith("/socket")):
            raise web.HTTPForbidden(text="This address needs its token: open the one that `vmlab serve` printed.\n")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(_headers(request.host))
        return response

    async def _page(self, request: web.Request) -> web.StreamResponse:
        base = f"{request.host}/{self.token}"
        text = Template(_own_file("page.html")).substitute(title=escape(self._title), socket=f"ws://{base}/socket")
        return web.Response(text=text, content_type="text/html")

    async def _script(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text=_own_file("page.js"), content_type="text/javascript")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        # Only names of files that are there: no text of a request becomes a path.
        for path in _STATIC.rglob("*"):
            if path.is_file() and str(path.relative_to(_STATIC)) == request.match_info["name"]:
                return web.FileResponse(path)
        raise web.HTTPNotFound

    async def _console(self, request: web.Request) -> web.StreamResponse:
        if len(self._sockets) >= MOST_CONSOLES:
            raise web.HTTPServiceUnavailable(text=f"{MOST_CONSOLES} consoles are open already.\n")
        socket = web.WebSocketResponse(heartbeat=15.0, max_msg_size=_MOST_BYTES)
        self._sockets.add(socket)
        self._handlers.add(handler := asyncio.current_task())
        process = ConsoleProcess(self._command, socket)
        try:
            await socket.prepare(request)
            await process.start(*_size(request.query))
            await _pass_on(socket, process)
        finally:
            self._sockets.discard(socket)
            await process.end()
            self._handlers.discard(handler)
        return socket

    async def _close(self, _: web.Application) -> None:
        for socket in set(self._sockets):
            await socket.close()

    async def _all_gone(self, _: web.Application) -> None:
        """Wait for consoles of pages that were closed just before: the server no longer knows their handlers."""
        if handlers := [one for one in self._handlers if one is not None]:
            await asyncio.wait(handlers)


def _own_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def is_allowed(path: str, headers: Mapping[str, str], token: str, *, is_socket: bool) -> bool:
    """Whether a request may be answered: it has the token, and comes from no page of another server."""
    host, origin = headers.get("Host", ""), headers.get("Origin")
    if not _HOST.fullmatch(host):
        return False
    # A browser sends the origin with every socket, and leaves it out where an address is typed.
    if origin != f"http://{host}" and (is_socket or origin is not None):
        return False
    given = path.removeprefix("/").partition("/")[0]
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _headers(host: str) -> dict[str, str]:
    """Nothing is fetched from another host, kept, framed, or told to the next page."""
    sources = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",
        "font-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": f"'self' ws://{host}",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in sources.items()),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def _size(asked: Mapping[str, Any]) -> tuple[int, int]:
    """Columns and rows, within bounds whatever was asked for."""
    width, height = (
        _within(asked.get(name), *bounds)
        for name, *bounds in zip(("width", "height"), SMALLEST, LARGEST, USUAL, strict=True)
    )
    return width, height


def _within(value: Any, least: int, most: int, usual: int) -> int:
    try:
        return max(least, min(most, int(value)))
    except (TypeError, ValueError, OverflowError):
        return usual


async def _pass_on(socket: web.WebSocketResponse, process: ConsoleProcess) -> None:
    """Hand what the page sends to the console, until either ends. What no page sends is left out."""
    async for message in socket:
        if message.type != WSMsgType.TEXT:
            continue
        try:
            what, *rest = message.json()
        except (ValueError, TypeError, RecursionError):
            continue
        match what, rest:
            case "stdin", [str(keys)]:
                await process.send_bytes(keys.encode("utf-8", "replace"))
            case "resize", [dict(asked)]:
                await process.set_terminal_size(*_size(asked))
            case "ping", [str() | int() | float() as sent]:
                await socket.send_json(["pong", sent])
            case "blur", _:
                await process.blur()
            case "focus", _:
                await process.focus()


async def listen(server: ConsoleServer, port: int) -> tuple[web.AppRunner, int]:
    """Begin to serve on a port of loopback, 0 for any that is free; returns it, and what to clean up at the end.

    Raises RefusedError where the port is taken or not allowed.
    """
    # The log of requests would have the token.
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=_CLOSING_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, ADDRESS, port).start()
    except OSError as error:
        await runner.cleanup()
        why = f"port {port} of {ADDRESS} cannot be used: {os.strerror(error.errno or 0)}"
        raise RefusedError(why, remedy="--port 0 takes one that is free") from error
    return runner, int(runner.addresses[0][1])


async def until_stopped() -> ExitCode:
    """Wait for SIGINT or SIGTERM; the exit code of it."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    came: list[int] = []

    def stop(number: int) -> None:
        came.append(number)
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    with contextlib.suppress(asyncio.CancelledError):
        await stopped.wait()
    return ExitCode.of_signal(came[0]) if came else ExitCode.INTERRUPTED
