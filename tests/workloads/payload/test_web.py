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
    log = str(captured / "access.log")
    assert access_count.count(log, "vmlab-7", "/x.html") == ({"200": 2}, 14058)
    assert access_count.count(log, "vmlab-7", "/") == ({"other": 2}, 14058)
    assert access_count.count(log, "ApacheBench/2.3", "/nix") == ({"404": 2}, 982)
    assert access_count.count(log, "vmlab", "/") == ({}, 0)


def test_what_is_no_get_of_the_page_is_counted_apart(tmp_path: Path) -> None:
    asked = ("GET / HTTP/1.0", "HEAD / HTTP/1.0", "GET /style.css HTTP/1.1", "GET /?p=1 HTTP/1.1")
    lines = [f'198.18.0.11 - - [30/Nov/2026:07:00:00 +0000] "{one}" 200 100 "-" "vmlab-7"' for one in asked]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    assert access_count.count(str(tmp_path / "log"), "vmlab-7", "/") == ({"200": 1, "other": 3}, 400)
    assert access_count.count(str(tmp_path / "log"), "vmlab-7", "/?p=1") == ({"200": 1, "other": 3}, 400)
