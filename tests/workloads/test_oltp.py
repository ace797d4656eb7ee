"""The transactions' steps against scripted guests."""

from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell, says
from tests.fakes.staging import stage_both
from vmlab.model.errors import WorkloadError
from vmlab.workloads.contract import Finished, WorkloadContext
from vmlab.workloads.kinds.oltp import Oltp, OltpParams


@pytest.fixture
def load() -> Oltp:
    return Oltp(OltpParams(transactions=300, concurrency=4, tables=2, rows=1000))


@pytest.fixture
async def prepared(load: Oltp, context: WorkloadContext, target: FakeShell) -> Oltp:
    target.answers.update({"xact_commit": says("0\n40\n"), "count(*) FROM sbtest": says("1000\n1000\n")})
    await stage_both(load, context)
    await load.prepare(context)
    target.answers["xact_commit"] = says("0\n345\n")
    return load


@pytest.fixture
def finished(captured: Path) -> Finished:
    return Finished(0, 11.6, (captured / "oltp-deadlocks.txt").read_text(), "")


async def test_the_server_alone_fills_vacuums_and_checkpoints_in_this_order(
    prepared: Oltp, source: FakeShell, target: FakeShell
) -> None:
    assert source.commands == []
    assert [words.split()[-1] for words in target.commands[:2]] == ["cleanup", "prepare"]
    assert "--tables=2 --table-size=1000 --rand-seed=7001 prepare" in target.commands[1]
    assert "-c VACUUM ANALYZE sbtest1, sbtest2 -c CHECKPOINT" in target.commands[2]


async def test_a_server_that_leaves_out_a_table_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    target.answers["count(*) FROM sbtest"] = says("1000\n")
    with pytest.raises(WorkloadError, match="counted tables: 1, but 2"):
        await prepared.collect(context, finished)


async def test_counts_are_taken_when_the_sessions_have_ended(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    answers = ["1\n300\n", "0\n345\n"]
    target.answers["xact_commit"] = lambda argv: says(answers.pop(0))
    collected = await prepared.collect(context, finished)
    assert collected.raw["xact_commit"] == "305\n"


def test_the_client_ends_by_events_not_by_time(load: Oltp, context: WorkloadContext) -> None:
    argv = load.client(context).argv
    assert {"--events=300", "--time=0", "--threads=4", "--pgsql-host=198.18.0.12"} <= set(argv)


async def test_verified_transactions_give_figures(prepared: Oltp, context: WorkloadContext, finished: Finished) -> None:
    collected = await prepared.collect(context, finished)
    figures = collected.values
    assert figures["run_time"] == 11.4497
    assert figures["transactions"] == 300
    assert figures["transactions_per_second"] == pytest.approx(26.2, abs=0.01)
    assert (figures["errors"], figures["reconnects"]) == (26, 0)
    assert collected.raw["sysbench"] == finished.stdout


async def test_fewer_transactions_than_asked_fail(context: WorkloadContext, prepared: Oltp, finished: Finished) -> None:
    short = Finished(0, 1, finished.stdout.replace("transactions:                        300", "transactions: 299"), "")
    with pytest.raises(WorkloadError, match="transactions of sysbench: 299, but 300"):
        await prepared.collect(context, short)


async def test_a_server_that_committed_less_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    target.answers["xact_commit"] = says("0\n339\n")
    with pytest.raises(WorkloadError, match="committed 299 transactions, but 300"):
        await prepared.collect(context, finished)


async def test_a_lost_row_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    target.answers["count(*) FROM sbtest"] = says("1000\n999\n")
    with pytest.raises(WorkloadError, match="rows in table sbtest2: 999, but 1000"):
        await prepared.collect(context, finished)


async def test_a_counter_that_is_no_number_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    target.answers["xact_commit"] = says("0\n\n")
    with pytest.raises(WorkloadError, match="xact_commit cannot be read"):
        await prepared.collect(context, finished)


async def test_a_client_that_was_refused_fails(context: WorkloadContext, prepared: Oltp) -> None:
    with pytest.raises(WorkloadError, match="exited with 1: FATAL: Thread initialization failed!"):
        await prepared.collect(context, Finished(1, 0.1, "", "FATAL: x\nFATAL: Thread initialization failed!\n"))
