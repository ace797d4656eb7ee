"""Figures in the output of a command: by pattern, column and path, and what is said where they are not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vmlab.model.errors import WorkloadError
from vmlab.workloads.metrics import Metric
from vmlab.workloads.reports import found_figures
from vmlab.workloads.reports.found_figures import FoundMetric, Printed, figures_in, found_metrics

REDIS = '"test","rps","avg_latency_ms"\n"SET","99009.90","0.265"\n"GET","101010.10","0.250"\n'
READ = '{"iops": 1234.5, "clat_ns": {"percentile": {"99.000000": 7000}}}'
FIO = f'fio: warning\n{{"jobs": [{{"read": {READ}}}], "n": "12"}}\n'


def metric(**said: Any) -> FoundMetric:
    return FoundMetric.model_validate(said)


def value_of(found: FoundMetric, out: str, err: str = "") -> float:
    return figures_in([Printed(out, err)], {"rate": found})["rate"]


@pytest.mark.parametrize(
    ("said", "out", "err", "value"),
    [
        ({"find": r'"GET","([0-9.]+)"'}, REDIS, "", 101010.10),
        ({"find": r"^total: ([0-9.]+)$"}, "subtotal: 1\ntotal: 2.5\n", "", 2.5),
        ({"find": r"real\s+([0-9.]+)"}, "real work\n", "real 0.25\n", 0.25),
        ({"find": r"took (\S+) ms", "unit": "ms"}, "took 1.5e3 ms", "", 1.5),
        ({"csv": "rps", "row": "GET"}, REDIS, "", 101010.10),
        ({"csv": "avg_latency_ms", "row": "SET", "unit": "ms"}, f"redis 7\n\n{REDIS}", "", 0.000265),
        ({"csv": "b"}, "a,b\n1, 2 \n", "", 2.0),
        ({"json": ".jobs[0].read.iops"}, FIO, "", 1234.5),
        ({"json": '.jobs[0].read.clat_ns.percentile."99.000000"', "unit": "us"}, FIO, "", 0.007),
        ({"json": ".n"}, FIO, "", 12.0),
        ({"json": "[0].a"}, 'note\n[\n{"a": 1},\n{"a": 2}\n]\n', "", 1.0),
        ({"json": "[1]"}, "[INFO] ready\n[2026-11-29 06:00:00] go\n[1, 2]\n[12.5] over\n", "", 2.0),
        ({"find": r"^total: ([0-9.]+)$"}, "total: 2.5\r\nend\r\n", "", 2.5),
        ({"find": r"[[|]rate[]|]: ([0-9.]+)"}, "[rate]: 2.5\n", "", 2.5),
        ({"json": ".x"}, '{"y": 1, "y": 2, "x": 3}', "", 3.0),
        ({"csv": "b"}, '\ufeff"a", "b"\r\n"x", "2"\r\n', "", 2.0),
        ({"csv": "a", "row": "2"}, 'redis\n\ufeff"a", "b"\n2,3\n1,3\n', "", 2.0),
        ({"find": r"rate=([0-9]+)"}, f"{'x' * 4000}rate=7{'x' * 4000}\n", "", 7.0),
        ({"find": r"rate=([0-9.]+)"}, f"{'x' * 2**22}rate=12345.6\n", "", 12345.6),
        ({"find": r"^GET,([0-9.]+),"}, "SET,1,234\nGET,12,345\n", "", 12.0),
        ({"find": r"rate: ([0-9.]+)"}, "rate: 7.5, of 12\n", "", 7.5),
        ({"find": r"rate: ([0-9.]+)"}, "rate: 7.5exactly\n", "", 7.5),
        ({"find": r"([0-9.]+) ms"}, "run-7 ms\n", "", 7.0),
        ({"csv": "rate"}, "op,rate\nread,12\nDone.\nover, out, and home\n", "", 12.0),
        ({"find": "([0-9]+) KiB", "unit": "KiB"}, "7 KiB", "", 7168.0),
        ({"find": "([0-9]+) MB/s", "unit": "MB/s"}, "7 MB/s", "", 7e6),
        ({"find": "([0-9]+) Mbit", "unit": "Mbit/s"}, "8 Mbit", "", 1e6),
        ({"find": "([0-9]+) %", "unit": "%"}, "8 %", "", 8.0),
        ({"find": "([0-9]+) runs", "unit": 1}, "8 runs", "", 8.0),
    ],
)
def test_a_figure_is_found_and_in_the_labs_unit(said: dict[str, Any], out: str, err: str, value: float) -> None:
    assert value_of(metric(**said), out, err) == pytest.approx(value)


@pytest.mark.parametrize(
    ("said", "out", "words"),
    [
        ({"find": r"n: (\d+)"}, "a\nb\nc\nd", r"nothing in the output matches 'n: (\d+)'; its last output: b | c | d"),
        ({"find": r"total: (\d+)"}, "total: 1\ntotal: 2", r"'total: (\d+)' matches 2 times, not once"),
        ({"find": r"a(\d)?"}, "a", r"the group of 'a(\d)?' matched nothing"),
        ({"find": r"= (.*)"}, "= 1,000", "'1,000' is no number of 0 or above"),
        ({"find": r"= (.*)"}, "= nan", "'nan' is no number"),
        ({"find": r"= (.*)"}, "= 1e999", "'inf' is no number"),
        ({"find": r"= (.*)"}, "= -1", "'-1.0' is no number of 0 or above"),
        ({"csv": "rps"}, "a,b\n1,2\n", "no line of the output has the head 'rps'"),
        ({"csv": "rps"}, REDIS, "there are 2 lines of CSV below the heads, not one; row names one"),
        ({"csv": "rps", "row": "DEL"}, REDIS, "there are 0 lines of CSV that begin with 'DEL', not one"),
        ({"csv": "rps"}, '"test","rps"\n', "there are 0 lines of CSV below the heads, not one"),
        ({"csv": "p99"}, "t,p99,p99\nx,1,2\n", "the head 'p99' is 2 times in its line, not once"),
        ({"json": ".a"}, '[\n{"a": 1}\n]\n', "the JSON document has no .a"),
        ({"json": ".a"}, '{"a": 1}\n[2]\n', "the command printed several JSON documents, not one"),
        ({"find": r"rate: ([0-9.]+)"}, f"rate: 5{'x' * 5000}rate: 6", "matches 2 times, not once"),
        ({"find": r"rate: ([0-9.]+)"}, "rate: 1.23457e+06\n", "has '1.23457', a part of '1.23457e+06'"),
        ({"find": r"rate: ([0-9.]+)"}, "rate: 1,234,567\n", "has '1', a part of '1,234'"),
        ({"find": r"rate: ([0-9]+)"}, "rate: 12.5\n", "has '12', a part of '12.5'"),
        ({"find": r"([0-9.]+) MB"}, "1,234 MB\n", "has '234', a part of '1,234'"),
        ({"find": r"([0-9]+) MB"}, "1.5e+06 MB\n", "has '06', a part of '5e+06'"),
        ({"find": r"([0-9]+) ms"}, "after -5 ms\n", "has '5', a part of '-5'"),
        ({"csv": "rate"}, "op,rate\nread,1,234\nwrite,987\n", "'read,1,234' has 3 fields, and the heads are 2"),
        ({"csv": "rate", "row": "read"}, "op,rate\nread,1,234\nwrite,987\n", "'read,1,234' has 3 fields"),
        ({"csv": "rate"}, "rate\n1,234\n987\n", "'1,234' has 2 fields, and the heads are 1"),
        ({"json": ".jobs[1]"}, FIO, "the JSON document has no .jobs[1]"),
        ({"json": ".jobs.read"}, FIO, "the JSON document has no .jobs.read"),
        ({"json": ".jobs"}, FIO, "is no number"),
        ({"json": ".x"}, '{"x": true}', "'True' is no number"),
        ({"json": ".x"}, '{"x": 1, "x": 2}', "the JSON document has .x twice, not once"),
        ({"json": ".x.y"}, '{"x": {"y": 1}, "x": {"y": 2}}', "the JSON document has .x twice, not once"),
        ({"json": ".x"}, f'{{"x": 1{"0" * 400}}}', "is no number of 0 or above"),
        ({"find": "([0-9]+)", "unit": "EiB"}, "9" * 300, "is no number of 0 or above"),
    ],
)
def test_a_figure_that_is_not_there_once_is_named(said: dict[str, Any], out: str, words: str) -> None:
    with pytest.raises(WorkloadError) as error:
        value_of(metric(**said), out)
    said_so = str(error.value)
    assert said_so.startswith("metric rate: ") and words in said_so and "\n" not in said_so


@pytest.mark.parametrize("out", ["", "none\n", '{"x": 1}\n{"x": 2}\n', '{"x": ' + "[" * 100_000, '{"x": NaN}'])
def test_json_is_one_document(out: str) -> None:
    with pytest.raises(
        WorkloadError, match=r"^metric rate: the command (should print a|printed several) JSON document"
    ):
        value_of(metric(json=".x"), out)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"find": ""}, "is empty, and matches whatever is printed"),
        ({"find": "("}, "is no regular expression: missing \\), unterminated subpattern"),
        ({"find": "[0-9]+"}, "has no group; it needs one around the number"),
        ({"find": "(a)(b)"}, "has 2 groups; it needs one"),
        ({"find": "(a)" + "b" * 1000}, "is longer than 1000 characters"),
        ({"find": "(a)", "csv": "x"}, "needs one of find, csv and json"),
        ({}, "needs one of find, csv and json"),
        ({"find": "(a)", "row": "x"}, "row is of csv"),
        ({"json": "qps"}, "is no path into JSON"),
        ({"json": ".a..b"}, "is no path into JSON"),
        ({"json": ""}, "is no path into JSON"),
        ({"find": "(a)", "unit": "furlong"}, "is no unit; use 1, k, M,"),
        ({"find": "(a)", "unit": "ops/s"}, "is no unit"),
        ({"find": "(a)", "unit": 2}, "unit"),
        ({"find": "(a)", "unit": True}, "unit"),
    ],
)
def test_what_is_no_place_of_a_figure_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        metric(**said)


def test_a_metric_is_declared_in_the_labs_words() -> None:
    assert metric(find="(a)", unit="ms", better="lower").declared("mean_latency") == Metric("s", "less", "mean latency")
    assert metric(find="(a)", unit="1/s", better="higher").declared("rate") == Metric("1/s", "more", "rate")
    assert metric(find="(a)").declared("n") == Metric("1", None, "n")


def test_what_is_no_metric_in_a_record_is_left_out() -> None:
    said = {"a": {"find": "(a)", "csv": None, "row": None, "json": None, "unit": "s", "better": None}, "b": 7, "c": {}}
    assert list(found_metrics(said)) == ["a"]
    assert found_metrics(None) == found_metrics([1]) == {}


def test_what_is_expected_may_stand_in_either_output() -> None:
    for out, err in (("a\ndone\n", ""), ("", "done"), ("a\r\ndone\r\n", "")):
        assert figures_in([Printed(out, err)], {}, "^done$") == {}
    with pytest.raises(WorkloadError, match=r"^the output has nothing that '\^done\$' matches; its last output: no$"):
        figures_in([Printed("done", ""), Printed("no\n", "")], {}, "^done$")


def test_figures_are_means_over_the_rounds_whatever_finds_them() -> None:
    rounds = [Printed('n 1\n{"x": 4}\n', "m 7\n"), Printed('n 2\n{"x": 6}\n', "m 9\n")]
    metrics = {"n": metric(find=r"n (\d+)"), "m": metric(find=r"m (\d+)"), "x": metric(json=".x")}
    assert figures_in(rounds, metrics, "n (.)") == {"n": 1.5, "m": 8.0, "x": 5.0}
    assert figures_in([], metrics, "n") == {}


FOR_EVER = Printed("n 1\n" + "a" * 60 + "b\n", "")


@pytest.mark.parametrize(
    ("metrics", "expect"),
    [({"n": metric(find=r"n (\d)"), "rate": metric(find="((?:a+)+)$")}, "n"), ({}, "((?:a+)+)$")],
)
def test_a_pattern_that_takes_for_ever_is_ended_and_named(
    metrics: dict[str, FoundMetric], expect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_figures, "SECONDS", 2)
    with pytest.raises(WorkloadError) as error:
        figures_in([FOR_EVER], metrics, expect)
    assert str(error.value) == (
        "the search for '((?:a+)+)$' in 66 B of output took longer than 2 s, and was ended; a simpler pattern is needed"
    )


def test_a_pattern_of_a_record_that_is_none_is_a_fault_of_the_workload() -> None:
    with pytest.raises(WorkloadError, match=r"^the search for '\(' in 66 B of output ended with 1$"):
        figures_in([FOR_EVER], {}, "(")


def test_json_is_looked_for_once_whatever_stands_behind_a_bracket() -> None:
    with pytest.raises(WorkloadError, match=r"^metric rate: the command should print a JSON document, but printed \[1"):
        value_of(metric(json=".x"), f"[1{' ' * 2_000_000}x\n")
