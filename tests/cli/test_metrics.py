"""`vmlab top --serve`: the recorder's figures for Prometheus, by the names of the export, and for this host alone."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.called import ended
from tests.tui.conftest import RECORDED
from vmlab.cli.serving import metrics_server
from vmlab.cli.serving.metrics_server import CONTENT_TYPE, MOST_AT_ONCE, MetricsServer, is_loopback, read_address
from vmlab.model.errors import RefusedError
from vmlab.model.sample import Sample, SampleNames
from vmlab.report.exports import openmetrics
from vmlab.report.exports.openmetrics_names import sample_text
from vmlab.report.exports.tidy import Exported
from vmlab.store.reader import RunReader
from vmlab.store.samples import samples

ROOT = Path(__file__).parents[2]
NAMES = ("cpu_user_percent", "cpu_user_percent[0]", 'disk_await_ms[dm"0]', "memory_used_bytes", "processes_running")
SAMPLE = Sample(1e9, 50.0, 1.0, 0.0, SampleNames.of(NAMES), (12.5, 25.0, 0.25, 2.0**33, float("nan")))


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> Iterator[MetricsServer]:
    made = MetricsServer(("127.0.0.1", 0), 1.0, clock)
    made.start()
    yield made
    made.close()


def asked(url: str, **headers: str) -> tuple[int, str, str]:
    """Status, kind and text of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_values_of_plugins_whose_names_end_up_alike_have_families_of_their_own() -> None:
    names = SampleNames.of(("fan.rpm", "fan_rpm", "fan_rpm[0]"))
    text = sample_text(SAMPLE._replace(layout=names, values=(1.0, 2.0, 3.0)))
    families = {one.name: one.samples for one in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    values = {name: [one.value for one in samples] for name, samples in families.items()}
    assert values == {"vmlab_fan_rpm": [1.0], "vmlab_fan_rpm_2": [2.0, 3.0]}


def test_a_scrape_is_openmetrics_of_the_newest_sample(server: MetricsServer) -> None:
    server.take(SAMPLE._replace(values=(1.0,) * len(NAMES)))
    server.take(SAMPLE)
    status, kind, text = asked(server.url)
    assert (status, kind) == (200, CONTENT_TYPE)
    families = {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    found = {(one.name, tuple(one.labels.items())): one.value for family in families.values() for one in family.samples}
    assert found == {
        ("vmlab_cpu_user_percent", ()): 12.5,
        ("vmlab_cpu_user_percent", (("part", "0"),)): 25.0,
        ("vmlab_disk_await_ms", (("part", 'dm"0'),)): 0.25,
        ("vmlab_memory_used_bytes", ()): 2.0**33,
    }
    assert {one.type for one in families.values()} == {"gauge"}
    assert {one.unit for one in families.values()} == {"percent", "ms", "bytes"}


def test_names_are_those_of_the_export(tmp_path: Path) -> None:
    reader = RunReader(RECORDED)
    with (tmp_path / "run.prom").open("wb") as file:
        openmetrics.write_samples([Exported(reader)], file)
    starts = {line.split("{")[0] for line in (tmp_path / "run.prom").read_text().splitlines() if line[0] != "#"}
    scraped = {name for _, sample in samples(reader) for name in _families(sample_text(sample))}
    assert scraped == starts - {"vmlab_run_info"}


def _families(text: str) -> set[str]:
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}


def test_without_a_sample_or_with_an_old_one_there_is_no_figure(server: MetricsServer, clock: Clock) -> None:
    assert asked(server.url)[0] == 503
    server.take(SAMPLE)
    clock.now = 59.0
    assert asked(server.url)[0] == 200
    clock.now = 61.0
    assert asked(server.url)[0] == 503


def test_a_page_of_another_name_is_refused(server: MetricsServer) -> None:
    server.take(SAMPLE)
    for host, status in (("evil.example", 403), ("198.18.0.1", 403), ("localhost:9000", 200), ("[::1]:9000", 200)):
        assert asked(server.url, Host=host)[0] == status
    assert asked(server.url.replace("/metrics", "/"))[0] == 404


def opened(server: MetricsServer) -> socket.socket:
    """A connection that says nothing yet."""
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    return socket.create_connection(("127.0.0.1", port), 60)


def answered(server: MetricsServer, request: bytes) -> bytes:
    """All that comes back for these bytes, until the server closes."""
    with opened(server) as link, contextlib.suppress(ConnectionError):
        link.sendall(request)
        link.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: link.recv(65536), b""))
    return b""


def test_slow_connections_hold_no_place(server: MetricsServer) -> None:
    """However many say nothing, the one that asks is answered; the oldest of them is closed for it."""
    server.take(SAMPLE)
    waiting = [opened(server) for _ in range(2 * MOST_AT_ONCE)]
    try:
        for _ in range(3):
            assert asked(server.url)[0] == 200
        assert waiting[0].recv(1) == b""
    finally:
        for one in waiting:
            one.close()


def test_a_request_has_one_deadline_however_steadily_its_bytes_come(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server, "_REQUEST_SECONDS", 0.2)
    with opened(server) as slow, pytest.raises(ConnectionError):
        slow.sendall(b"GET /metrics HTTP/1.0\r\n")
        while True:
            # Each byte is in time by itself; what is sent after the end is answered by a reset.
            slow.sendall(b"X")
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        ("GET /metrics HTTP/1.1", "Host: [", 403),
        ("GET /metrics HTTP/1.1", "Host: 127.0.0.1\r\nHost: evil.example", 400),
        ("GET /metrics HTTP/1.1", "Host: evil<script>", 403),
        ("GET http://[/metrics HTTP/1.1", "Host: 127.0.0.1", 200),
        ("GET http://127.0.0.1/metrics?x=<script> HTTP/1.1", "Host: 127.0.0.1", 200),
        ("GET //[ HTTP/1.1", "Host: 127.0.0.1", 404),
        ("GET /metrics/../../etc/passwd<script> HTTP/1.1", "Host: 127.0.0.1", 404),
        ("GET /metrics%00<script> HTTP/1.1", "Host: 127.0.0.1", 404),
        ("GET /\xff\xfe HTTP/1.1", "Host: 127.0.0.1", 404),
        ("<script> /metrics HTTP/1.1", "Host: 127.0.0.1", 501),
        ("POST /metrics HTTP/1.1", "Host: 127.0.0.1", 501),
        ("GET /metrics HTTP/<script>", "Host: 127.0.0.1", 400),
        ("GET /metrics HTTP/9.9", "Host: 127.0.0.1", 505),
        ("GET <script> /metrics HTTP/1.1", "Host: 127.0.0.1", 400),
        ("GET /" + "<script>" * 9000 + " HTTP/1.1", "Host: 127.0.0.1", 414),
        ("GET /metrics HTTP/1.1", "X: " + "<script>" * 9000, 431),
        ("GET /metrics HTTP/1.1", "\r\n".join(f"X-{n}: <script>" for n in range(200)), 431),
    ],
)
def test_a_request_that_is_none_has_an_answer_without_its_words(
    server: MetricsServer, capfd: pytest.CaptureFixture[str], request_line: str, headers: str, status: int
) -> None:
    server.take(SAMPLE)
    answer = answered(server, f"{request_line}\r\n{headers}\r\n\r\n".encode("latin-1"))
    # Without a version that it can read it answers as HTTP 0.9 does, without a head.
    assert answer.startswith((b"HTTP/1.0 %d " % status, HTTPStatus(status).phrase.encode()))
    assert b"script" not in answer
    assert capfd.readouterr() == ("", "")
    assert asked(server.url)[0] == 200


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("9000", ("127.0.0.1", 9000)),
        (":9000", ("127.0.0.1", 9000)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("[::1]:9000", ("::1", 9000)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
    ],
)
def test_an_address_is_of_loopback_unless_another_is_given(text: str, address: tuple[str, int]) -> None:
    assert read_address(text) == address
    assert is_loopback(address) is (address[0] != "0.0.0.0")


@pytest.mark.parametrize("text", ["", "host", "example.org:9000", "127.0.0.1:", "127.0.0.1:70000", "1:-1", "::1"])
def test_what_is_no_address_is_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("top", "--serve", text) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_it_goes_on_until_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("top", "--serve", "9000", "--count", "1") == 2
    assert ended("top", "--serve", "9000", "--json") == 2
    assert capsys.readouterr().err.count("--serve goes on until Ctrl-C") == 2


def test_a_port_that_is_taken_is_refused(server: MetricsServer) -> None:
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    with pytest.raises(RefusedError, match=rf"^port {port} of 127.0.0.1 cannot be used: Address already in use"):
        MetricsServer(("127.0.0.1", port), 1.0)


def test_the_command_serves_this_host_until_ctrl_c() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "vmlab", "top", "--serve", "127.0.0.1:0", "--interval", "100 ms"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    status, text = 503, ""
    while status == 503:
        status, _, text = asked(url)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Ctrl-C ends it" in said
    families = {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    (used,) = families["vmlab_memory_used_bytes"].samples
    assert used.value > 2**20
    assert {"vmlab_cpu_user_percent", "vmlab_recorder_cpu_percent"} <= families.keys()
