"""ab's text as numbers."""

from pathlib import Path

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.reports.ab_report import RequestCount, parse_ab, parse_percentiles


def test_a_report_is_read(captured: Path) -> None:
    report = parse_ab((captured / "ab-merged.txt").read_text())
    assert (report.total_time, report.requests, report.transferred) == (0.164, 1000, 7031000)
    assert (report.failed, report.write_errors, report.non_2xx) == (0, 0, 0)
    assert report.latency_mean == 0.000655


def test_what_an_answer_says_is_not_taken_for_the_report(captured: Path) -> None:
    text = (captured / "ab-404.txt").read_text()
    spoof = "LOG: header received:\nFailed requests:        9\n"
    assert parse_ab(text.replace("Completed 100", f"{spoof}Completed 100")) == parse_ab(text)


def test_responses_other_than_2xx_are_counted(captured: Path) -> None:
    assert parse_ab((captured / "ab-404.txt").read_text()).non_2xx == 200


def test_a_refused_connection_leaves_nothing_to_read(captured: Path) -> None:
    with pytest.raises(WorkloadError, match="Connection refused"):
        parse_ab((captured / "ab-refused.txt").read_text())


def test_a_broken_line_is_quoted(captured: Path) -> None:
    text = (captured / "ab-merged.txt").read_text().replace("7031000 bytes", "-1 bytes")
    with pytest.raises(WorkloadError, match="'Total transferred:      -1 bytes'"):
        parse_ab(text)


def test_percentiles_are_read_in_seconds(captured: Path) -> None:
    found = parse_percentiles((captured / "ab-percentiles.csv").read_text(), 300)
    assert sorted(found) == list(range(101))
    assert (found[0], found[99], found[100]) == (0.000175, 0.003767, 0.004039)


def test_ranks_past_the_slowest_request_mean_the_slowest(captured: Path) -> None:
    text = (captured / "ab-percentiles-of-50.csv").read_text()
    assert "99,7311156825131345.000" in text
    found = parse_percentiles(text, 50)
    assert found[50] < found[99] == found[100] == 2.917933


def test_percentiles_cut_short_are_refused(captured: Path) -> None:
    lines = (captured / "ab-percentiles.csv").read_text().splitlines()
    with pytest.raises(WorkloadError, match="wrote 50 percentiles"):
        parse_percentiles("\n".join(lines[:51]), 300)
    with pytest.raises(WorkloadError, match="'2,-nan'"):
        parse_percentiles("\n".join([*lines[:3], "2,-nan"]), 300)


def test_progress_is_read(captured: Path) -> None:
    count = RequestCount()
    lines = (captured / "ab-merged.txt").read_text().splitlines()
    told = [done for line in lines if (done := count.feed(line)) is not None]
    assert count.feed("LOG: header received:") == 1001
    assert told == [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]
