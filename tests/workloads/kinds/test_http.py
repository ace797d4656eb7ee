"""Requests against scripted guests."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.shell import FakeShell, says
from tests.fakes.staging import stage_both
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.http import Http, HttpParams
from vmlab.workloads.services import parse_selects
from vmlab.workloads.shell import Completed
from vmlab.workloads.workload_steps import Finished, Progress, StagingContext, WorkloadContext

PAGE = {"status": 200, "length": 30000, "generator": "WordPress 6.1.1", "complete": True}


def counters(*, selects: int) -> str:
    return f"Com_select\t{selects}\nQcache_hits\t0\n"


def served(statuses: dict[str, int], sent: int = 7031000) -> str:
    return json.dumps({"statuses": statuses, "bytes": sent}) + "\n"


@pytest.fixture
def load() -> Http:
    return Http(HttpParams(requests=1000, concurrency=4))


@pytest.fixture
def warming(source: FakeShell, target: FakeShell) -> list[str]:
    """Answers for a preparation that goes well; the list is MariaDB's counters, first to last."""
    script = [counters(selects=100), counters(selects=125), "125\n" + counters(selects=125 + 21 * 1001)]
    source.answers["page_fetch.py"] = target.answers["page_fetch.py"] = says(json.dumps(PAGE))
    target.answers["mariadb --batch"] = lambda argv: says(script.pop(0))
    return script


@pytest.fixture
async def prepared(
    load: Http, context: WorkloadContext, warming: list[str], source: FakeShell, target: FakeShell, captured: Path
) -> Http:
    await stage_both(load, context)
    await load.prepare(context)
    source.answers["load.csv"] = says((captured / "ab-percentiles.csv").read_text())
    target.answers["access_count.py"] = says(served({"200": 1000}))
    return load


@pytest.fixture
def finished(captured: Path) -> Finished:
    text = (captured / "ab-merged.txt").read_text()
    return Finished(0, 0.3, text.replace("        127.0.0.1", "        198.18.0.12").replace("/x.html", "/"), "")


@pytest.mark.parametrize(
    ("page", "word"),
    [
        ({"status": 302}, "not a whole page"),
        ({"complete": False}, "not a whole page"),
        ({"generator": ""}, "not made by"),
    ],
)
async def test_a_page_that_is_not_wordpress_fails_the_preparation(
    load: Http, context: WorkloadContext, warming: list[str], source: FakeShell, page: dict[str, Any], word: str
) -> None:
    source.answers["page_fetch.py"] = says(json.dumps({**PAGE, **page}))
    with pytest.raises(WorkloadError, match=word):
        await load.prepare(context)


@pytest.mark.parametrize("step", ["stage", "rehearse"])
async def test_a_page_without_a_query_fails_the_servers_own_preparation(
    load: Http, target: FakeShell, warming: list[str], step: str
) -> None:
    warming[1] = warming[0]
    with pytest.raises(WorkloadError, match="without a query"):
        await getattr(load, step)(StagingContext("load", "target", 7, target))


async def test_a_client_rehearses_with_nobody_there(load: Http, source: FakeShell) -> None:
    source.answers["page_fetch.py"] = Completed(1, "", "ConnectionRefusedError\n")
    await load.rehearse(StagingContext("load", "source", 7, source))
    assert any("page_fetch.py" in words and '"port":9' in words for words in source.commands)


async def test_verified_requests_give_figures(prepared: Http, context: WorkloadContext, finished: Finished) -> None:
    collected = await prepared.collect(context, finished)
    figures = collected.values
    assert (figures["requests"], figures["run_time"], figures["queries_per_request"]) == (1000, 0.164, 21)
    assert figures["latency_p50"] < figures["latency_p95"] < figures["latency_p99"] < figures["latency_max"] == 0.004039


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("Complete requests:      1000", "Complete requests:      999", "complete requests of ab: 999"),
        ("Concurrency Level:      4", "Concurrency Level:      1", "concurrency of ab: 1, but 4 were asked for"),
        ("Document Path:          /", "Document Path:          /x", "ab asked for 198.18.0.12:80/x, not for .*:80/$"),
        ("Server Port:            80", "Server Port:            81", "ab asked for 198.18.0.12:81/, not for"),
        ("0.164 seconds", "0.016 seconds", "mean latency of 0.000655 s does not follow from its 0.016 s"),
        ("Failed requests:        0", "Failed requests:        1", "failed requests of ab: 1"),
        ("Total transferred", "Non-2xx responses:      7\nTotal transferred", "other than 2xx: 7"),
        ("Total transferred", "Write errors:           2\nTotal transferred", "write errors of ab: 2"),
    ],
)
async def test_every_kind_of_bad_request_fails(
    prepared: Http, context: WorkloadContext, finished: Finished, old: str, new: str, word: str
) -> None:
    assert old in finished.stdout
    with pytest.raises(WorkloadError, match=word):
        await prepared.collect(context, Finished(0, 0.3, finished.stdout.replace(old, new), ""))


async def test_requests_that_do_not_fit_into_their_time_fail(
    prepared: Http, context: WorkloadContext, finished: Finished
) -> None:
    """A tenth of the time with the mean latency that follows from it: the percentiles are another's."""
    quick = finished.stdout.replace("0.164 seconds", "0.016 seconds").replace("0.655 [ms] (mean)", "0.064 [ms] (mean)")
    with pytest.raises(
        WorkloadError, match=r"ab's requests took .* s together, more than 4 at a time have in its 0\.016 s"
    ):
        await prepared.collect(context, Finished(0, 0.3, quick, ""))


async def test_latencies_that_are_a_tenth_of_what_the_connections_were_busy_fail(
    prepared: Http, context: WorkloadContext, finished: Finished, source: FakeShell, captured: Path
) -> None:
    first, *lines = (captured / "ab-percentiles.csv").read_text().splitlines()
    shorter = [f"{percent},{float(value) / 10:.3f}" for percent, value in (line.split(",") for line in lines)]
    source.answers["load.csv"] = says("\n".join([first, *shorter]))
    with pytest.raises(WorkloadError, match="the latencies of ab are too short: its operations took at most"):
        await prepared.collect(context, finished)


async def test_percentiles_that_fall_fail(
    prepared: Http, context: WorkloadContext, finished: Finished, source: FakeShell, captured: Path
) -> None:
    lines = (captured / "ab-percentiles.csv").read_text().splitlines()
    lines[96] = "95,0.001"
    source.answers["load.csv"] = says("\n".join(lines))
    with pytest.raises(WorkloadError, match="ab has 1e-06 s as percentile 95 and"):
        await prepared.collect(context, finished)


@pytest.mark.parametrize(
    ("log", "word"),
    [
        (served({"200": 999}), "Apache's log has {'200': 999}"),
        (served({"200": 1000, "500": 1}), "'500': 1"),
        (served({}), "Apache's log has {}"),
        (served({"other": 1000}), "but 1000 GETs of / with status 200 were asked for"),
        (served({"200": 1000}, 7030999), "Apache sent 7030999 bytes, but ab received 7031000"),
    ],
)
async def test_a_log_that_tells_otherwise_fails(
    prepared: Http, context: WorkloadContext, finished: Finished, target: FakeShell, log: str, word: str
) -> None:
    target.answers["access_count.py"] = says(log)
    with pytest.raises(WorkloadError, match=word):
        await prepared.collect(context, finished)


async def test_fewer_queries_than_requests_fail(
    prepared: Http, context: WorkloadContext, finished: Finished, warming: list[str]
) -> None:
    warming[0] = "125\n" + counters(selects=125 + 1000)
    with pytest.raises(WorkloadError, match="1000 queries for 1001 pages"):
        await prepared.collect(context, finished)


async def test_a_refused_ab_fails_with_its_word(prepared: Http, context: WorkloadContext, captured: Path) -> None:
    with pytest.raises(WorkloadError, match=r"ab exited with 111: apr_socket_recv: Connection refused"):
        await prepared.collect(context, Finished(111, 0.1, (captured / "ab-refused.txt").read_text(), ""))


def test_the_client_marks_its_requests_as_this_cells(load: Http, context: WorkloadContext) -> None:
    argv = load.client(context).argv
    assert "User-Agent: vmlab-7-3-2-load" in argv
    assert argv[-1] == "http://198.18.0.12/"


def test_progress_counts_requests(load: Http) -> None:
    assert load.progress("Completed 300 requests") == Progress(300, 1000, "requests")
    assert load.progress("Benchmarking 127.0.0.1 (be patient)") is None


def test_a_path_cannot_smuggle_anything() -> None:
    for path in ("page", "/a b", "/;rm", "/$(id)", "//[::1]\n"):
        with pytest.raises(ValueError, match="pattern"):
            HttpParams(requests=10, path=path)


def test_counters_that_cannot_be_read_fail() -> None:
    assert parse_selects("Com_select\t5\nQcache_hits\t2\n") == 7
    with pytest.raises(WorkloadError, match="cannot be read: 'ERROR 2002"):
        parse_selects("ERROR 2002 (HY000)\n")
    with pytest.raises(WorkloadError, match="did not tell"):
        parse_selects("")
