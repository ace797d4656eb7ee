"""The recorder's newest figures over HTTP, as OpenMetrics, for Prometheus to scrape.

A client may be anybody, and as slow as it likes: each request has one deadline, from its connection to the last byte of
the answer, and where too many are open the oldest is closed for the newest. No answer has any of the request in it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from vmlab.model.errors import RefusedError
from vmlab.model.sample import Sample
from vmlab.report.exports.openmetrics_names import sample_text

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LOOPBACK = "127.0.0.1"
PATH = "/metrics"
MOST_AT_ONCE = 16
"""Requests that are open at a time; the oldest is closed for one more."""
_REQUEST_SECONDS = 5.0
_CHECK_SECONDS = 0.25
"""How often it is looked for requests beyond their deadline."""
_LEAST_FRESH = 10.0

Address = tuple[str, int]


def read_address(text: str) -> Address:
    """``ADDRESS:PORT`` or ``PORT``, which is of loopback. Raises ValueError for anything else; no name is looked up."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon and host else LOOPBACK
    host = LOOPBACK if host == "localhost" else host
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError("is no address and port, such as 127.0.0.1:9000")
    return str(ipaddress.ip_address(host)), int(port)


def is_loopback(address: Address) -> bool:
    """Whether only this host can reach it."""
    return ipaddress.ip_address(address[0]).is_loopback


class MetricsServer:
    """Answers ``GET /metrics`` on `address` with the newest sample; raises RefusedError where that is not possible.

    `interval` is that of the recorder, in seconds: a sample that is much older is an error (503).
    """

    def __init__(self, address: Address, interval: float, now: Callable[[], float] = time.monotonic) -> None:
        self._newest: Sample | None = None
        self._now = now
        self._fresh = max(_LEAST_FRESH, 3 * interval)
        server = type("Server", (_Server,), {"address_family": _family(address)})
        try:
            self._server: _Server = server(address, self._handler(is_loopback(address)))
        except OSError as error:
            why = f"port {address[1]} of {address[0]} cannot be used: {os.strerror(error.errno or 0)}"
            raise RefusedError(why, remedy="choose another with --serve") from error
        host, port = self._server.server_address[:2]
        self.url = f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}{PATH}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_CHECK_SECONDS,), name="metrics", daemon=True
        )

    def start(self) -> None:
        """Answer from now on, in a thread of its own."""
        self._thread.start()

    def take(self, sample: Sample) -> None:
        """Answer with this sample until the next one."""
        self._newest = sample

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _text(self) -> str | None:
        sample = self._newest
        return None if sample is None or self._now() - sample.mono > self._fresh else sample_text(sample)

    def _handler(self, loopback: bool) -> type[BaseHTTPRequestHandler]:
        answer = self._text

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            timeout = _REQUEST_SECONDS
            server_version, sys_version = "vmlab", ""

            def do_GET(self) -> None:
                """Figures, or why not."""
                hosts = self.headers.get_all("Host", [])
                if len(hosts) > 1:
                    self.send_error(HTTPStatus.BAD_REQUEST)
                elif loopback and not _names_loopback("".join(hosts)):
                    # Another name may be one that somebody else's name server points at this host.
                    self._say(HTTPStatus.FORBIDDEN, "only by an address of loopback\n")
                elif _path_of(self.path) != PATH:
                    self._say(HTTPStatus.NOT_FOUND, f"the metrics are at {PATH}\n")
                elif (text := answer()) is None:
                    self._say(HTTPStatus.SERVICE_UNAVAILABLE, "no sample yet\n")
                else:
                    self._say(HTTPStatus.OK, text, CONTENT_TYPE)

            def _say(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                self.wfile.write(body)

            def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
                """Say what is wrong by the status alone: the usual page repeats words of the request."""
                self.close_connection = True
                self._say(HTTPStatus(code), f"{HTTPStatus(code).phrase}\n")

            def log_message(self, format: str, *args: Any) -> None:
                """Requests are not logged."""

        return Handler


class _Server(ThreadingHTTPServer):
    """Each request has a thread, `MOST_AT_ONCE` of them at most."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *arguments: Any) -> None:
        self._lock = threading.Lock()
        self._began: dict[socket.socket, float] = {}
        """When each open connection was accepted, the oldest first."""
        super().__init__(*arguments)

    def server_bind(self) -> None:
        """As `HTTPServer` does, but without a look-up of the host's name, which may ask another host."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer it in a thread of its own, in the place of the oldest where there is no room."""
        with self._lock:
            if len(self._began) >= MOST_AT_ONCE:
                self._break_off(next(iter(self._began)))
            self._began[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Break off what is beyond its deadline, however steadily its bytes come."""
        with self._lock:
            for request, began in list(self._began.items()):
                if time.monotonic() - began > _REQUEST_SECONDS:
                    self._break_off(request)

    def _break_off(self, request: socket.socket) -> None:
        """Have the thread that reads or writes it end; it closes the socket."""
        del self._began[request]
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._began.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of ours."""


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def _path_of(target: str) -> str:
    """The path that a request is for, in origin form or, as proxies send it, with scheme and host."""
    scheme, colon, rest = target.partition("://")
    return (f"/{rest.partition('/')[2]}" if colon and scheme.lower() == "http" else target).partition("?")[0]


def _names_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
