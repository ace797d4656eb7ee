"""The transactions' steps against scripted guests."""

from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell, says
from tests.fakes.staging import stage_both
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.oltp import Oltp, OltpParams
from vmlab.workloads.workload_steps import Finished, WorkloadContext

BEFORE = "40|2000|0|0|2000"
AFTER = "345|2310|600|305|260000"
SERVED = f"{BEFORE}\n0\n{AFTER}\n1000\n1000\n"
"""Counters before the start, open sessions, counters, and the rows of both tables."""


@pytest.fixture
def load() -> Oltp:
    return Oltp(OltpParams(transactions=300, concurrency=4, tables=2, rows=1000))


@pytest.fixture
async def prepared(load: Oltp, context: WorkloadContext, target: FakeShell) -> Oltp:
    target.answers["xact_commit"] = says(f"0\n{BEFORE}\n")
    await stage_both(load, context)
    await load.prepare(context)
    target.answers["xact_commit"] = says(SERVED)
    return load


@pytest.fixture
def finished(captured: Path) -> Finished:
    text = (captured / "oltp-deadlocks.txt").read_text()
    return Finished(0, 11.6, text.replace("from seed (17)", "from seed (7003)"), "")


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
    target.answers["xact_commit"] = says(f"{BEFORE}\n0\n{AFTER}\n1000\n")
    with pytest.raises(WorkloadError, match="counted tables: 1, but 2"):
        await prepared.collect(context, finished)


async def test_counts_are_taken_when_the_sessions_have_ended(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    answers = [SERVED.replace(f"\n0\n{AFTER}", f"\n1\n{AFTER.replace('345', '300')}"), SERVED]
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


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Number of threads: 4", "Number of threads: 1", "threads of sysbench: 1, but 4 were asked for"),
        ("from seed (7003)", "from seed (17)", "seed of sysbench: 17, but 7003 were asked for"),
        ("from seed (7003)", "from current time", "sysbench printed no seed"),
        ("4564", "3000", "statements of sysbench that are reads: 3000, but 4200 were asked for"),
        ("4564", "4565", "statements of sysbench that are reads: 4565, but 4200 were asked for"),
        ("1183", "893", "statements of sysbench that are other: 1600, but 1800 were asked for"),
        ("11.4497s", "1.1450s", "the latencies of sysbench's 300 events contradict each other"),
    ],
)
async def test_other_work_than_was_asked_for_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, old: str, new: str, reason: str
) -> None:
    assert old in finished.stdout
    with pytest.raises(WorkloadError, match=reason):
        await prepared.collect(context, Finished(0, 11.6, finished.stdout.replace(old, new), ""))


async def test_transactions_far_shorter_than_their_threads_were_busy_fail(
    context: WorkloadContext, prepared: Oltp, finished: Finished
) -> None:
    text = finished.stdout
    for old in ("152.56", "1013.60", "2022.04"):
        assert text.count(f" {old}\n") == 1
        text = text.replace(f" {old}\n", f" {float(old) / 10:.2f}\n")
    total = text.split("sum:")[1].split("\n")[0]
    with pytest.raises(WorkloadError, match="the latencies of sysbench's events are too short"):
        shorter = text.replace(total, f" {float(total) / 10:.2f}")
        await prepared.collect(context, Finished(0, 11.6, shorter, ""))


async def test_transactions_without_ranges_have_fewer_reads(captured: Path) -> None:
    asked = OltpParams(transactions=300, concurrency=4, tables=2, rows=1000, range_selects=False)
    text = (captured / "oltp-deadlocks.txt").read_text()
    with pytest.raises(WorkloadError, match="that are reads: 4564, but 3000 were asked for"):
        Oltp(asked).figures({"sysbench": text}, 11.6)
    assert Oltp(asked).figures({"sysbench": text.replace("4564", "3260")}, 11.6)["errors"] == 26


async def test_a_server_that_committed_less_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    target.answers["xact_commit"] = says(SERVED.replace("345", "339"))
    with pytest.raises(WorkloadError, match="committed 299 transactions, but 300"):
        await prepared.collect(context, finished)


async def test_a_lost_row_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    target.answers["xact_commit"] = says(f"{BEFORE}\n0\n{AFTER}\n1000\n999\n")
    with pytest.raises(WorkloadError, match="rows in table sbtest2: 999, but 1000"):
        await prepared.collect(context, finished)


async def test_a_counter_that_is_no_number_fails(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    for line in ("", "345|2310", AFTER.replace("600", "-")):
        target.answers["xact_commit"] = says(f"{BEFORE}\n0\n{line}\n")
        with pytest.raises(WorkloadError, match=r"PostgreSQL.s counters? after the end cannot be read"):
            await prepared.collect(context, finished)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("|2310|", "|2200|", "has inserted 200 rows, and 300 transactions take 237"),
        ("|600|", "|300|", "has updated 300 rows, and 300 transactions take 474"),
        ("|305|", "|0|", "has deleted 0 rows, and 300 transactions take 237"),
        # Ranges of one row each.
        ("|260000", "|11000", "has read 9000 rows, and 300 transactions take 98400"),
    ],
)
async def test_transactions_that_did_other_work_fail(
    context: WorkloadContext,
    prepared: Oltp,
    finished: Finished,
    target: FakeShell,
    old: str,
    new: str,
    reason: str,
) -> None:
    target.answers["xact_commit"] = says(SERVED.replace(AFTER, AFTER.replace(old, new)))
    with pytest.raises(WorkloadError, match=reason):
        await prepared.collect(context, finished)


async def test_a_client_that_was_refused_fails(context: WorkloadContext, prepared: Oltp) -> None:
    with pytest.raises(WorkloadError, match="exited with 1: FATAL: Thread initialization failed!"):
        await prepared.collect(context, Finished(1, 0.1, "", "FATAL: x\nFATAL: Thread initialization failed!\n"))


async def test_the_server_is_asked_once_for_all_that_it_counted(
    context: WorkloadContext, prepared: Oltp, finished: Finished, target: FakeShell
) -> None:
    before = len(target.commands)
    await prepared.collect(context, finished)
    (asked,) = target.commands[before:]
    # A session would count itself in the database that is counted.
    assert asked.index("-d postgres") < asked.index("xact_commit") < asked.index(r"\connect sbtest")
    assert asked.index(r"\connect sbtest") < asked.index("count(*) FROM sbtest1")
    assert "/srv/load/counters" in asked


def preloading() -> Oltp:
    return Oltp(OltpParams(transactions=300, concurrency=4, tables=2, rows=1000, preload=True, access="uniform"))


async def test_tables_are_read_before_the_start_and_commits_counted_after_that(
    context: WorkloadContext, target: FakeShell
) -> None:
    target.answers["pg_prewarm"] = says("51|51\n")
    target.answers["xact_commit"] = says("0\n43|0|0|0|0\n")
    await preloading().prepare(context)
    assert "'sbtest1', 'sbtest1_pkey', 'k_1', 'sbtest2', 'sbtest2_pkey', 'k_2'" in target.commands[0]
    assert "xact_commit" in target.commands[1]
    (counted,) = target.files.values()
    assert counted == b"43|0|0|0|0\n"


async def test_a_server_whose_tables_are_read_beforehand_is_restarted_with_empty_buffers(
    context: WorkloadContext, load: Oltp, target: FakeShell
) -> None:
    target.answers["xact_commit"] = says("0\n43|0|0|0|0\n")
    restart = "systemctl restart postgresql.service"
    await stage_both(load, context)
    assert restart not in target.commands
    await stage_both(preloading(), context)
    checkpoint = next(at for at, words in enumerate(target.commands) if "CHECKPOINT" in words and at > 3)
    assert target.commands[checkpoint + 1] == restart


async def test_blocks_that_were_not_read_fail(context: WorkloadContext, target: FakeShell) -> None:
    target.answers["pg_prewarm"] = says("51|50\n")
    with pytest.raises(WorkloadError, match="blocks of the tables that were read: 50, but 51"):
        await preloading().prepare(context)


async def test_nothing_is_read_unless_that_is_asked_for(
    load: Oltp, context: WorkloadContext, target: FakeShell
) -> None:
    await load.prepare(context)
    assert target.commands == []


def test_the_client_is_told_which_rows_to_ask_for(load: Oltp, context: WorkloadContext) -> None:
    assert "--rand-type=special" in load.client(context).argv
    assert "--rand-type=uniform" in preloading().client(context).argv


def test_range_selects_are_left_out_where_that_is_asked_for(load: Oltp, context: WorkloadContext) -> None:
    without = Oltp(load.params.model_copy(update={"range_selects": False}))
    assert "--range-selects=off" in without.client(context).argv
    assert not [option for option in load.client(context).argv if "range" in option]
