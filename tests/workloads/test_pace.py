"""Fixed loads: what a pace means, and what clients say of having kept it."""

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.shell import FakeShell, says
from tests.fakes.staging import stage_both
from vmlab.model.errors import WorkloadError
from vmlab.workloads import payload
from vmlab.workloads.kinds.http import Http, HttpParams, parse_paced
from vmlab.workloads.kinds.oltp import Oltp, OltpParams
from vmlab.workloads.kinds.smtp import Smtp, SmtpParams
from vmlab.workloads.pace import delivered_percent, demand_not_early, due_operations, percentile
from vmlab.workloads.payload import smtp_client
from vmlab.workloads.registry import kinds
from vmlab.workloads.reports.sysbench_report import parse_queue
from vmlab.workloads.workload_steps import Finished, Progress, WorkloadContext

Json = dict[str, Any]
ENDED: Json = {"ended": "all", "requests": 4, "bytes": 400, "seconds": 2.0, "last_began": 1.5}


def ended(latencies: list[float], **changes: Any) -> str:
    return f"{json.dumps({'latencies': latencies})}\n{json.dumps({**ENDED, **changes})}\n"


def test_the_delivered_share_is_of_the_operations_that_were_due_when_the_last_one_began() -> None:
    # Ten at 2/s: the last is due after 4.5 s.
    assert delivered_percent(10, due_operations(4.5, 2.0)) == 100.0
    assert delivered_percent(10, due_operations(4.9, 2.0)) == 100.0, "before the next would have been due"
    assert delivered_percent(10, due_operations(9.5, 2.0)) == 50.0


def test_percentiles_are_latencies_that_occurred() -> None:
    latencies = [0.1 * place for place in range(20, 0, -1)]
    assert percentile(latencies, 95) == pytest.approx(1.9)
    assert percentile(latencies, 50) == pytest.approx(1.0)
    assert percentile([0.5], 99) == 0.5


@pytest.mark.parametrize("kind", kinds())
def test_a_kind_with_a_pace_declares_its_unit_and_its_proof(kind: str) -> None:
    declared = kinds()[kind]
    has = ("pace" in declared.Params.model_fields, bool(declared.paced), "delivered_percent" in declared.metrics)
    assert len(set(has)) == 1


@pytest.mark.parametrize(
    ("params", "amounts", "word"),
    [
        (HttpParams, {"requests": 12, "pace": "5/s"}, "12 requests at 5/s are over after 2.4 s"),
        (HttpParams, {"requests": 200_000, "pace": "50/s"}, "at most 100000 requests"),
        (OltpParams, {"transactions": 10, "concurrency": 1, "pace": "5/s"}, "10 transactions at 5/s are over"),
        (OltpParams, {"transactions": 100, "pace": "30/min"}, "whole number of transactions"),
        (SmtpParams, {"batches": 9, "messages": 5, "size": "1 kB", "pace": "5/s", "pause": "1 s"}, "pause and burst"),
        (SmtpParams, {"batches": 9, "messages": 5, "size": "1 kB", "pace": "5/s", "burst": 3}, "pause and burst"),
        (HttpParams, {"requests": 12, "pace": 5}, "such as 5/s or 30/min"),
        (HttpParams, {"requests": 12, "pace": "0/s"}, "out of bounds"),
    ],
)
def test_a_pace_that_makes_no_load_is_refused(params: Any, amounts: Json, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        params.model_validate(amounts)


def test_a_pace_bounds_the_estimate_from_below() -> None:
    slow = HttpParams.model_validate({"requests": 60, "pace": "1/s"})
    assert Http(slow).footprint("kvm").seconds == 63
    assert Http(slow.model_copy(update={"pace": None})).footprint("kvm").seconds < 10


class Pages(http.server.BaseHTTPRequestHandler):
    """Answers slowly where the path asks for it, so that requests meet."""

    def do_GET(self) -> None:
        if self.path == "/gone":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", "99" if self.path == "/cut" else "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def paced(port: int, path: str = "/") -> "subprocess.CompletedProcess[str]":
    program = Path(payload.__path__[0]) / "paced_requests.py"
    options = {"address": "127.0.0.1", "port": port, "path": path, "agent": "x", "requests": 4, "concurrency": 2}
    argv = [sys.executable, "-I", "-S", str(program), json.dumps({**options, "pace": 10.0})]
    return subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)


def test_the_paced_client_begins_no_request_before_it_is_due(port: int) -> None:
    done = paced(port)
    assert done.returncode == 0, done.stderr
    end = json.loads(done.stdout.splitlines()[-1])
    assert (end["ended"], end["requests"]) == ("all", 4)
    assert 0.3 <= end["last_began"] <= end["seconds"]
    report = parse_paced(done.stdout, 4, 10.0)
    assert report.bytes == end["bytes"] > 4 * len("hello")
    assert 0 < report.values["latency_p50"] <= report.values["latency_max"] <= end["seconds"]


@pytest.mark.parametrize(("path", "word"), [("/gone", "HTTP/1.0 404"), ("/cut", "was cut")])
def test_the_first_answer_that_is_not_whole_ends_the_paced_client(port: int, path: str, word: str) -> None:
    done = paced(port, path)
    assert done.returncode == 1
    assert word in done.stderr


def test_figures_of_a_paced_client_count_from_when_requests_were_due() -> None:
    values = parse_paced(ended([0.1, 0.2, 0.3, 0.4]), 4, 2.0).values
    assert values["requests_per_second"] == 2.0
    assert (values["latency_p50"], values["latency_p95"], values["latency_max"]) == (0.2, 0.4, 0.4)
    assert values["delivered_percent"] == 100.0
    assert parse_paced(ended([0.1] * 4, last_began=3.5), 4, 2.0).values["delivered_percent"] == 50.0


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (ended([0.1] * 4, requests=3), "requests of the paced client: 3, but 4"),
        (ended([0.1] * 3), "told 3 latencies that can be read, of 4"),
        (ended([0.1] * 4, seconds="2"), "cannot be read"),
        ("Traceback\n", "should end with a JSON object"),
    ],
)
def test_what_a_paced_client_did_not_say_fails(text: str, word: str) -> None:
    with pytest.raises(WorkloadError, match=word):
        parse_paced(text, 4, 2.0)


def test_operations_that_began_before_they_were_due_fail() -> None:
    demand_not_early(1.5, 4, 2.0, "it")
    with pytest.raises(WorkloadError, match=r"it began its last operation after 1\.400 s, and it was due at 1\.500 s"):
        demand_not_early(1.4, 4, 2.0, "it")
    with pytest.raises(WorkloadError, match="the paced client began its last operation"):
        parse_paced(ended([0.1] * 4), 4, 1.0)
    load = Smtp(SmtpParams.model_validate({"batches": 4, "messages": 5, "size": "1 kB", "pace": "2/s"}))
    sent = {"accepted": 20, "seconds": 10.0, "sending": 4.0, "burst": 0.0, "clock": 1000.0, "last_began": 7.0}
    client = f"{json.dumps({'latencies': [0.5] * 4})}\n{json.dumps(sent)}\n"
    drain = json.dumps({"empty": 1000.0, "ahead": 0.0, "uncertainty": 0.0})
    with pytest.raises(WorkloadError, match=r"began its last operation after 7\.000 s, and it was due at 7\.500 s"):
        load.figures({"client": client, "drain": drain}, 11.0)


async def test_paced_requests_are_held_against_the_servers_log(
    context: WorkloadContext, source: FakeShell, target: FakeShell
) -> None:
    load = Http(HttpParams.model_validate({"requests": 4, "concurrency": 2, "pace": "30/min"}))
    page = {"status": 200, "length": 30000, "generator": "WordPress 6.1.1", "complete": True}
    source.answers["page_fetch.py"] = target.answers["page_fetch.py"] = says(json.dumps(page))
    counts = ["Com_select\t1\n", "Com_select\t9\n", "9\nCom_select\t99\n", "9\nCom_select\t99\n"]
    target.answers["mariadb --batch"] = lambda argv: says(counts.pop(0))
    target.answers["access_count.py"] = says(json.dumps({"statuses": {"200": 4}, "bytes": 400}))
    await stage_both(load, context)
    await load.prepare(context)
    assert "paced_requests.py" in " ".join(source.files)
    client = load.client(context)
    assert json.loads(client.argv[-1]) == {
        "address": "198.18.0.12",
        "port": 80,
        "agent": "vmlab-7-3-2-load",
        "requests": 4,
        "concurrency": 2,
        "path": "/",
        "pace": 0.5,
    }
    assert load.progress('{"done": 2}') == Progress(2, 4, "requests")
    collected = await load.collect(context, Finished(0, 6.2, ended([0.1] * 4, seconds=6.1, last_began=6.0), ""))
    assert collected.values["delivered_percent"] == 100.0
    assert set(collected.raw) == {"client", "stderr"}
    target.answers["access_count.py"] = says(json.dumps({"statuses": {"200": 4}, "bytes": 399}))
    with pytest.raises(WorkloadError, match="Apache sent 399 bytes, but the paced client received 400"):
        await load.collect(context, Finished(0, 6.2, ended([0.1] * 4, seconds=6.1, last_began=6.0), ""))


@pytest.mark.parametrize(
    ("name", "amounts", "begun", "waiting", "share"),
    [
        ("oltp-paced.txt", {"transactions": 60, "pace": "5/s"}, 56, 0, 100.0),
        (
            "oltp-overrun.txt",
            {"transactions": 3000, "pace": "500/s", "concurrency": 1},
            1568,
            3418,
            pytest.approx(31.45, abs=0.01),
        ),
    ],
)
def test_sysbenchs_queue_tells_whether_its_pace_was_kept(
    captured: Path, name: str, amounts: Json, begun: int, waiting: int, share: Any
) -> None:
    text = (captured / name).read_text().replace("5000/sec", "500/sec")
    queue = parse_queue(text)
    assert (queue.begun, queue.waiting) == (begun, waiting)
    load = Oltp(OltpParams.model_validate({"concurrency": 4, **amounts}))
    assert load.figures({"sysbench": text}, 20.0)["delivered_percent"] == share


def test_sysbench_without_a_word_on_its_queue_fails(captured: Path, context: WorkloadContext) -> None:
    load = Oltp(OltpParams.model_validate({"transactions": 300, "pace": "5/s"}))
    assert "--rate=5" in load.client(context).argv
    with pytest.raises(WorkloadError, match="no length of its queue"):
        load.figures({"sysbench": (captured / "oltp-deadlocks.txt").read_text()}, 20.0)


def test_batches_of_mail_begin_when_they_are_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "smtp-source"
    program.write_text("#!/bin/sh\nprintf '3\\r\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    who = {"server": "x:25", "sender": "a", "recipient": "b", "subject": "s", "size": 9}
    options = {**who, "batches": 3, "messages": 3, "pause": 0.0, "burst": 0, "pace": 15.0}
    monkeypatch.setattr("sys.argv", ["program", json.dumps(options)])
    smtp_client.main()
    told, end = (json.loads(line) for line in capsys.readouterr().out.splitlines()[-2:])
    assert len(told["latencies"]) == 3
    assert min(told["latencies"]) > 0
    assert 0.4 <= end["last_began"] < end["seconds"]
    assert end["accepted"] == 9


def test_mail_with_a_pace_says_how_late_its_batches_were() -> None:
    amounts = {"batches": 4, "messages": 5, "size": "1 kB", "pace": "2/s"}
    load = Smtp(SmtpParams.model_validate(amounts))
    sent = {"accepted": 20, "seconds": 10.0, "sending": 4.0, "burst": 0.0, "clock": 1000.0, "last_began": 17.5}
    client = f"{json.dumps({'latencies': [0.5, 0.5, 0.5, 2.0]})}\n{json.dumps(sent)}\n"
    drain = json.dumps({"empty": 1001.0, "ahead": 0.0, "uncertainty": 0.001})
    figures = load.figures({"client": client, "drain": drain}, 10.0)
    assert (figures["messages_per_second"], figures["latency_p95"]) == (2.0, 2.0)
    assert figures["delivered_percent"] == 50.0, "of eight batches that were due four had begun"


def test_waiting_for_a_pace_is_idle_and_tables_are_filled_ahead() -> None:
    cost = Oltp(OltpParams.model_validate({"transactions": 240, "pace": "4/s"})).footprint("tcg")
    assert cost.seconds == pytest.approx(65)
    assert cost.idle_seconds == pytest.approx(60 - 240 * 0.026)
    assert cost.staging_seconds == pytest.approx(4 * 5_000 * 1.5e-4)
