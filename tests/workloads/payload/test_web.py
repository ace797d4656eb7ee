"""The programs around requests: fetching a page, counting a log."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vmlab.workloads.payload import access_count, page_fetch

PAGES = {
    "/": (200, '<html><meta name="generator" content="WordPress 6.1.1" />\n</html>\n'),
    "/cut": (200, '<html><meta name="generator" content="WordPress 6.1.1" />'),
    "/gone": (404, "<html>no</html>"),
}


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, text = PAGES[self.path]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/", {"status": 200, "generator": "WordPress 6.1.1", "complete": True}),
        ("/cut", {"status": 200, "generator": "WordPress 6.1.1", "complete": False}),
        ("/gone", {"status": 404, "generator": "", "complete": True}),
    ],
)
def test_a_page_is_fetched_and_described(
    port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], path: str, answer: dict[str, Any]
) -> None:
    options = {"address": "127.0.0.1", "port": port, "path": path, "agent": "x"}
    monkeypatch.setattr("sys.argv", ["program", json.dumps(options)])
    page_fetch.main()
    told = json.loads(capsys.readouterr().out)
    assert told == {**answer, "length": len(PAGES[path][1])}


def test_a_log_is_counted_for_one_agent(captured: Path) -> None:
    assert access_count.count(str(captured / "access.log"), "vmlab-7") == ({"200": 2}, 14058)
    assert access_count.count(str(captured / "access.log"), "ApacheBench/2.3") == ({"404": 2}, 982)
    assert access_count.count(str(captured / "access.log"), "vmlab") == ({}, 0)
