"""sysbench's text as numbers."""

from pathlib import Path

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.reports.sysbench_report import DatabaseReport, IntervalCount, Report, parse_sysbench


def test_a_report_of_primes_is_read(captured: Path) -> None:
    report = parse_sysbench(Report, (captured / "sysbench-cpu.txt").read_text())
    assert report.events == 2500
    assert report.total_time == pytest.approx(5.0, abs=0.5)
    assert 0.002 < report.latency_avg < report.latency_p95 <= report.latency_max < 1


@pytest.mark.parametrize(
    "quicker",
    [{"4.03"}, {"6.67"}, {"28.54"}, {"4.03", "6.67"}, {"4.03", "6.67", "28.54"}, {"4.03", "28.54", "10075.34"}],
)
def test_latencies_that_contradict_each_other_are_refused(captured: Path, quicker: set[str]) -> None:
    """As of a tool that divides some of them."""
    text = (captured / "sysbench-cpu.txt").read_text()
    for number in quicker:
        assert text.count(f" {number}\n") == 1
        text = text.replace(f" {number}\n", f" {float(number) / 1000:.2f}\n")
    with pytest.raises(WorkloadError, match="the latencies of sysbench's 2500 events contradict each other: average"):
        parse_sysbench(Report, text)


def test_a_percentile_in_the_last_class_may_be_far_below_the_average(captured: Path) -> None:
    """As where each event waits for minutes until it is begun."""
    text = (captured / "sysbench-cpu.txt").read_text()
    longer = {"4.03": "150000.00", "6.67": "100000.00", "28.54": "200000.00", "10075.34": "375000000.00"}
    for old, new in longer.items():
        text = text.replace(f" {old}\n", f" {new}\n")
    assert parse_sysbench(Report, text.replace("5.0390s", "300.0000s")).latency_p95 == 100.0


def test_a_report_of_transactions_is_read(captured: Path) -> None:
    text = (captured / "oltp-deadlocks.txt").read_text()
    report, counts = parse_sysbench(Report, text), parse_sysbench(DatabaseReport, text)
    assert (report.total_time, report.events) == (11.4497, 300)
    assert (report.latency_avg, report.latency_p95, report.latency_max) == (0.15256, 1.0136, 2.02204)
    assert (counts.transactions, counts.queries, counts.ignored_errors, counts.reconnects) == (300, 6454, 26, 0)


def test_a_report_cut_short_is_refused_with_its_last_line(captured: Path) -> None:
    text = (captured / "oltp-deadlocks.txt").read_text().split("General statistics")[0]
    with pytest.raises(WorkloadError, match=r"no 'total time'; its last line is 'reconnects:"):
        parse_sysbench(Report, text)


@pytest.mark.parametrize("value", ["", "-nan", "11.4497 s s", "inf s"])
def test_a_number_that_is_none_is_quoted(captured: Path, value: str) -> None:
    text = (captured / "oltp-deadlocks.txt").read_text().replace("11.4497s", value)
    with pytest.raises(WorkloadError, match="cannot be read: 'total time:"):
        parse_sysbench(Report, text)


def test_what_a_silent_tool_printed_is_refused() -> None:
    with pytest.raises(WorkloadError, match="no 'transactions'"):
        parse_sysbench(DatabaseReport, "")


def test_rates_each_second_add_up_to_about_the_count(captured: Path) -> None:
    count = IntervalCount(2500)
    text = (captured / "sysbench-cpu.txt").read_text()
    told = [done for line in text.splitlines() if (done := count.feed(line)) is not None]
    assert len(told) == 5
    assert told == sorted(told)
    assert told[-1] == pytest.approx(2480, abs=25)


def test_the_count_so_far_never_passes_the_total(captured: Path) -> None:
    count = IntervalCount(200)
    lines = (captured / "oltp-deadlocks.txt").read_text().splitlines()
    assert max(done for line in lines if (done := count.feed(line)) is not None) == 200
