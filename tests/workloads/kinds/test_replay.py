"""The replay's steps against scripted guests, and accounts that are not believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.shell import FakeShell, says
from tests.fakes.staging import stage_both
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.replay import Replay, ReplayParams
from vmlab.workloads.workload_steps import Finished, WorkloadContext

QUERIES = 64
"""Of the log's first two connections."""
ROWS = 682
COUNTS = "f962f206c00d110cd1bc2f32cec75337ca0ca50e3aaaeece44cbb840c7a05dfe"
"""Of these, as a real MariaDB gave them."""


def account(**measured: Any) -> dict[str, Any]:
    """What the client tells of a good replay, but for `measured`."""
    one = {"seconds": 2.0, "queries": QUERIES, "rows": ROWS, "bytes_sent": 90_000, "counts": COUNTS, "disagreed": 0}
    one |= {"latency_p50": 0.001, "latency_p95": 0.02, "latency_max": 0.3}
    return {
        "threads": 4,
        "warm": one | {"seconds": 3.0},
        "measured": one | measured,
        "client_cpu_seconds": 0.5,
    }


def ended(told: dict[str, Any]) -> Finished:
    return Finished(0, 5.0, '{"stage": "warm", "done": 1, "total": 2}\n' + json.dumps(told) + "\n", "")


@pytest.fixture
async def load(context: WorkloadContext, target: FakeShell) -> Replay:
    load = Replay(ReplayParams(connections=2))
    target.answers.update(
        {
            "Com_select": says("Com_select\t100\n"),
            "nproc": says("2\n"),
            "systemd-detect-virt": says("kvm\n"),
            "clock_rate": says('{"hertz": [2.0e9, 3.0e9]}\n'),
        }
    )
    await stage_both(load, context)
    await load.prepare(context)
    target.answers["Com_select"] = says(f"Com_select\t{100 + 2 * QUERIES}\n")
    return load


async def test_both_sides_are_made_ready(load: Replay, source: FakeShell, target: FakeShell) -> None:
    log = json.loads(source.files["/srv/load/queries.json"])
    assert (len(log), sum(map(len, log))) == (2, QUERIES)
    assert source.files["/run/vmlab/workloads/load.threads"] == b"4\n"
    assert b"CREATE TABLE `wp_posts`" in target.files["/srv/load/data.sql"]
    restarted, made, filled, *_ = target.commands
    assert restarted == "systemctl restart mariadb.service"
    assert "'replay'@'198.18.0.0/255.254.0.0'" in made
    assert filled.endswith("replay /srv/load/data.sql")


async def test_figures_of_the_measured_pass(load: Replay, context: WorkloadContext) -> None:
    collected = await load.collect(context, ended(account()))
    figures = {reading.metric: reading.value for reading in load.readings(collected)}
    assert (figures["run_time"], figures["warm_time"]) == (2.0, 3.0)
    assert (figures["queries"], figures["queries_per_second"]) == (QUERIES, QUERIES / 2)
    assert (figures["threads"], figures["cpus"]) == (4, 2)
    assert figures["source_cpu"] == pytest.approx(0.1)
    assert figures["clock_hz"] == 2.5e9
    assert figures["run_time_at_1_ghz"] == 5.0
    assert figures["core_seconds_at_1_ghz"] == 10.0


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"systemd-detect-virt": "qemu\n"}, "absent: an emulated processor has no clock of its own"),
        ({"clock_rate": '{"hertz": []}\n'}, "absent: it is measured on x86-64 alone"),
    ],
)
async def test_a_clock_that_is_not_known_is_absent_and_so_is_what_follows_from_it(
    load: Replay, context: WorkloadContext, target: FakeShell, answers: dict[str, str], reason: str
) -> None:
    target.answers.update({key: says(text) for key, text in answers.items()})
    collected = await load.collect(context, ended(account()))
    assert collected.raw["clock"].startswith(reason)
    assert not {"clock_hz", "run_time_at_1_ghz", "core_seconds_at_1_ghz"} & set(collected.values)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (account(queries=63), "queries of the measured pass: 63, but 64 were asked for"),
        (account(rows=ROWS - 1), f"rows of the measured pass: {ROWS - 1}, but {ROWS} were asked for"),
        (account(counts="ac"), "some queries of the measured pass had other numbers of rows than they have"),
        (
            account(rows=0, counts="0") | {"warm": account()["warm"] | {"rows": 0, "counts": "0"}},
            f"rows of the warm pass: 0, but {ROWS} were asked for",
        ),
        (account(bytes_sent=90_001), "bytes that were sent differ: 90000 in the warm pass, 90001"),
        (account() | {"threads": 2}, "threads of the replay: 2, but 4"),
        (account() | {"warm": account()["warm"] | {"disagreed": 3}}, "3 queries were answered differently"),
        ({"warm": {}}, "the replay's account has no measured"),
        (account(latency_p95=0.0001), "the replay has 0.0001 s as percentile 95 and 0.001 s as percentile 50"),
        (account(latency_p50=1.0, latency_p95=1.0, latency_max=1.0), "took 32.000 s together, more than 4 connections"),
        (
            account(latency_p50=1e-5, latency_p95=2e-4, latency_max=3e-3),
            "the latencies of the replay are too short: its operations took at most 0.016 s",
        ),
    ],
)
async def test_accounts_that_are_not_believed(
    load: Replay, context: WorkloadContext, told: dict[str, Any], reason: str
) -> None:
    with pytest.raises(WorkloadError, match=reason):
        await load.collect(context, ended(told))


async def test_the_servers_own_count_must_be_the_same(
    load: Replay, context: WorkloadContext, target: FakeShell
) -> None:
    target.answers["Com_select"] = says(f"Com_select\t{99 + 2 * QUERIES}\n")
    with pytest.raises(WorkloadError, match="SELECTs that MariaDB counted: 127, but 128"):
        await load.collect(context, ended(account()))


async def test_a_count_that_is_no_number_is_told(load: Replay, context: WorkloadContext, target: FakeShell) -> None:
    target.answers["Com_select"] = says("\n")
    with pytest.raises(WorkloadError, match=r"MariaDB.s counter cannot be read"):
        await load.collect(context, ended(account()))


async def test_the_clients_error_is_told(load: Replay, context: WorkloadContext) -> None:
    with pytest.raises(WorkloadError, match="the replay exited with 1: Access denied"):
        await load.collect(context, Finished(1, 0.1, "", "Access denied\n"))


def test_progress_has_a_stage() -> None:
    load = Replay(ReplayParams())
    told = load.progress('{"stage": "measured", "done": 3, "total": 600}')
    assert told is not None
    assert (told.done, told.total, told.unit, told.stage) == (3, 600, "connections", "measured")
    assert load.progress('{"threads": 4}') is None
    assert load.progress("words") is None
