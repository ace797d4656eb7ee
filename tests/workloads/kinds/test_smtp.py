"""Mail against scripted guests."""

import json
from typing import Any

import pytest

from tests.fakes.shell import FakeShell, says
from tests.fakes.staging import stage_both
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.smtp import Smtp, SmtpParams, drain_seconds
from vmlab.workloads.workload_steps import Finished, Progress, WorkloadContext

CLOCKS = {"ahead": 0.5, "uncertainty": 0.001}
SENT = {"ended": "all", "accepted": 20, "seconds": 9.0, "sending": 5.0, "burst": 2.0, "clock": 1000.0}


def finished(status: int = 0, **changes: Any) -> Finished:
    return Finished(status, 9.5, json.dumps({**SENT, **changes}) + "\n", "smtp-source: fatal: 550")


def mailbox(delivered: int, size: int = 56_002) -> str:
    return json.dumps({"delivered": delivered, "sizes": {str(size): delivered}, "others": 0})


@pytest.fixture
def load() -> Smtp:
    amounts = {"batches": 2, "messages": 5, "size": "56 kB", "pause": "1 s", "burst": 10}
    return Smtp(SmtpParams.model_validate(amounts))


@pytest.fixture
async def settled(load: Smtp, context: WorkloadContext, source: FakeShell, target: FakeShell) -> Smtp:
    target.answers["queue_watch.py"] = says(json.dumps({"left": 0, "empty": 1004.25}))
    target.answers["mail_count.py"] = says(mailbox(20))
    source.answers["clock_difference.py"] = says(json.dumps(CLOCKS))
    await stage_both(load, context)
    await load.prepare(context)
    await load.settle(context, finished())
    return load


async def test_delivered_mail_gives_figures_with_the_drain_apart(settled: Smtp, context: WorkloadContext) -> None:
    collected = await settled.collect(context, finished())
    figures = collected.values
    assert figures == {
        "run_time": 9.0,
        "sending_time": 5.0,
        "burst_time": 2.0,
        "drain_time": 3.75,
        "messages": 20,
        "bytes": 20 * 56_000,
    }


async def test_a_queue_that_does_not_drain_fails(settled: Smtp, context: WorkloadContext, target: FakeShell) -> None:
    target.answers["queue_watch.py"] = says(json.dumps({"left": 3, "empty": None}))
    with pytest.raises(WorkloadError, match="3 messages were still in the queue after 340 s"):
        await settled.settle(context, finished())


async def test_mail_that_was_not_delivered_fails(settled: Smtp, context: WorkloadContext, target: FakeShell) -> None:
    target.answers["mail_count.py"] = says(mailbox(19))
    with pytest.raises(WorkloadError, match="delivered messages: 19, but 20"):
        await settled.collect(context, finished())


async def test_mail_that_was_not_accepted_fails(settled: Smtp, context: WorkloadContext) -> None:
    with pytest.raises(WorkloadError, match="accepted messages: 19, but 20"):
        await settled.collect(context, finished(accepted=19))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"seconds": 5.5}, r"worked for 5\.500 s; sending and its pauses take "),
        ({"burst": 0.0}, r"reports a burst of 0\.000 s, and \d+ messages were asked for"),
        ({"burst": 6.0}, r"reports a burst of 6\.000 s"),
    ],
)
async def test_times_that_are_not_those_of_what_was_asked_for_fail(
    settled: Smtp, context: WorkloadContext, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(WorkloadError, match=reason):
        await settled.collect(context, finished(**changes))


async def test_mail_that_arrived_short_fails(settled: Smtp, context: WorkloadContext, target: FakeShell) -> None:
    target.answers["mail_count.py"] = says(mailbox(20, 55_000))
    with pytest.raises(WorkloadError, match=r"56000 bytes were sent; delivered .*55000"):
        await settled.collect(context, finished())


async def test_a_client_that_failed_fails_before_any_waiting(
    load: Smtp, context: WorkloadContext, target: FakeShell
) -> None:
    with pytest.raises(WorkloadError, match="exited with 1: smtp-source: fatal: 550"):
        await load.settle(context, finished(status=1))
    assert target.commands == []


async def test_a_queue_that_nobody_watched_has_no_drain_time(
    load: Smtp, context: WorkloadContext, target: FakeShell
) -> None:
    target.answers["mail_count.py"] = says(mailbox(20))
    with pytest.raises(WorkloadError, match="not watched"):
        await load.collect(context, finished())


async def test_a_last_line_that_cannot_be_read_fails(settled: Smtp, context: WorkloadContext) -> None:
    with pytest.raises(WorkloadError, match=r"not '12\.'"):
        await settled.collect(context, Finished(0, 1, "12.\n", ""))
    with pytest.raises(WorkloadError, match="cannot be read"):
        await settled.collect(context, finished(burst=None))


def test_a_drain_is_never_below_zero_but_within_the_clocks_uncertainty() -> None:
    sent = {"clock": 1000.0, "burst": 0.3, "sending": 2.0}
    assert drain_seconds(sent, {"empty": 1000.75, **CLOCKS}) == pytest.approx(0.25)
    assert drain_seconds(sent, {"empty": 1000.495, **CLOCKS}) == 0
    assert drain_seconds(sent, {"empty": 1000.21, **CLOCKS}) == 0, "the answer was seen late"
    with pytest.raises(WorkloadError, match=r"0\.110 s before the last messages were sent: a clock was set"):
        drain_seconds(sent, {"empty": 1000.09, **CLOCKS})
    assert drain_seconds({**sent, "burst": 0.0}, {"empty": 999.0, **CLOCKS}) == 0


def test_every_cell_has_a_subject_of_its_own(load: Smtp, context: WorkloadContext) -> None:
    options = json.loads(load.client(context).argv[-1])
    assert options["subject"] == "vmlab-7-3-2-load"
    assert (options["server"], options["size"], options["pause"]) == ("198.18.0.12:25", 56_000, 1.0)


def test_progress_counts_messages(load: Smtp) -> None:
    assert load.progress('{"stage": "burst", "done": 12, "total": 20}') == Progress(12, 20, "messages", "burst")
    assert load.progress(json.dumps(SENT)) is None


def test_something_must_be_sent() -> None:
    with pytest.raises(ValueError, match="must not both be 0"):
        SmtpParams.model_validate({"batches": 0, "messages": 5, "size": "1 kB"})
