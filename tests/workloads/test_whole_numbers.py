"""Groups that have a part of a number, or one in another unit, as many tools print them; and those that have all."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from vmlab.model.errors import WorkloadError
from vmlab.workloads.reports.found_figures import AskedMetric, FoundMetric, Printed, figures_in, found_metrics
from vmlab.workloads.reports.whole_number import fault_of_group, sides


def asked(said: dict[str, str]) -> FoundMetric:
    return TypeAdapter(AskedMetric).validate_python(said)


def value_of(out: str, find: str, unit: str = "1") -> float:
    return figures_in([Printed(out, "")], {"rate": FoundMetric.model_validate({"find": find, "unit": unit})})["rate"]


@pytest.mark.parametrize(
    ("out", "find", "whole"),
    [
        ("rate: 1234.5 MB/s", r"rate:.*([0-9.]+) MB/s", "4.5"),
        ("rate: 987.6 MB/s", r"rate:.*([0-9]+) MB/s", "7.6"),
        ("rate: 1,234 req/s", r"rate: ([0-9.]+).*req/s", "1,234"),
        ("rate: 1.5e+06 req/s", r"rate: ([0-9.]+).*req/s", "1.5e+06"),
        ("rate: 12.5 req/s", r"rate: ([0-9]+)\S* req/s", "12.5"),
        ("0:59.23elapsed", r"([0-9.]+)elapsed", "0:59.23"),
        ("1:01.23elapsed", r"([0-9.]+)elapsed", "1:01.23"),
        ("elapsed: 1:02.34", r"elapsed: ([0-9.]+)", "1:02"),
        ("elapsed: 1:02:34", r"elapsed: ([0-9.]+)", "1:02"),
        ("1:02:34 elapsed", r"([0-9]+) elapsed", "02:34"),
        ("real\t1m2.345s", r"real\s+([0-9.]+)", "1m2"),
        ("real\t1m2.345s", r"^real.*?([0-9.]+)s", "1m2.345"),
        ("size 1\u202f234\u202f567 B", r"size ([0-9]+)", "1\u202f234"),
        ("n = 1'234'567", r"n = ([0-9]+)", "1'234"),
        ("n = 1_234_567", r"n = ([0-9]+)", "1_234"),
        ("took 1,52 s", r"took ([0-9]+)", "1,52"),
        ("rate 1.234,56 MB/s", r"rate ([0-9.]+)", "1.234,56"),
        ("rate: \x1b[1;32m1,234\x1b[0m MB/s", r"([0-9.]+)\S* MB/s", "1,234"),
    ],
)
def test_a_part_of_a_number_is_a_fault(out: str, find: str, whole: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(whole)) as error:
        value_of(out, find)
    assert ", a part of " in str(error.value)


@pytest.mark.parametrize(
    ("out", "find", "value"),
    [
        ("version 1.23", r"version 1\.([0-9]+)", 23),
        ("rate 12.5", r"rate ([0-9]+)\.", 12),
        ("rate 12.5", r"rate ([0-9]+)(?:\.[0-9]+)?", 12),
        ("rate 12,5", r"rate ([0-9]+)[.,]", 12),
        ("GET,998,12", r"GET,([0-9]+)", 998),
        ("fio,5,120,7", r"^fio,([0-9]+),", 5),
        ("5,10,20", r"^([0-9]+),", 5),
        ("real\t0m2.345s", r"real\s+0m([0-9.]+)s", 2.345),
        ("elapsed 0:59.23", r"elapsed 0:([0-9.]+)", 59.23),
        ("p99:12.5", r"p99:([0-9.]+)", 12.5),
        ("99%:12.5", r"99%:([0-9.]+)", 12.5),
        ("at 12:30 7 s", r"([0-9]+) s", 7),
        ("rate: \x1b[32m123.4\x1b[0m mails", r"rate: .*?([0-9.]+)", 123.4),
        ("12 345 67", r"^([0-9]+)", 12),
        ("run-5", r"run-([0-9]+)", 5),
        ("(12.5)", r"\(([0-9.]+)\)", 12.5),
        ("[12.5]", r"[\[]([0-9.]+)[]]", 12.5),
        ("x12.5y", r"x(?P<rate>[0-9.]+)y", 12.5),
        ("took 12.5 ms", r"(?:took ([0-9.]+)) ms", 12.5),
        ("b=12.5", r"(?:a|b=([0-9.]+))", 12.5),
        ("Rate 12.5", r"(?i:rate ([0-9.]+))", 12.5),
        ("[12, 13]", r"\[([0-9.]+)[\],]", 12),
        ("cpu 3:45", r"cpu.*?([0-9]+)$", 45),
        ("at 12:30", r"at ([0-9]+)", 12),
    ],
)
def test_what_the_pattern_names_is_meant(out: str, find: str, value: float) -> None:
    assert value_of(out, find) == value


DD = "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.89 s, %s"


@pytest.mark.parametrize(
    ("out", "find", "unit", "follows"),
    [
        (DD % "1.2 GB/s", r"copied, .* s, ([0-9.]+)", "MB/s", "GB/s"),
        ("IOPS=12.3k, BW=48MiB/s", r"IOPS=([0-9.]+)", "1/s", "k"),
        ("IOPS=12.3k, BW=48MiB/s", r"IOPS=([0-9.]+)", "1", "k"),
        ("BW=3992KiB/s (4087kB/s)", r"BW=([0-9.]+)", "MiB/s", "KiB/s"),
        ("Latency   635.91us", r"Latency +([0-9.]+)", "ms", "us"),
        ("latency 635.91 \u00b5s", r"latency ([0-9.]+)", "ms", "\u00b5s"),
        ("9.41 Gbits/sec  0 sender", r"([0-9.]+)\s+\S+\s+0", "Mbit/s", "Gbits/sec"),
        ("took 12 seconds", r"took ([0-9.]+)", "ms", "seconds"),
        ("size 7 MB", r"size ([0-9.]+) [kM]B", "KiB", "MB"),
        ("speed 900 KB/s", r"speed ([0-9.]+)", "MB/s", "KB/s"),
        ("speed 900 kb/s", r"speed ([0-9.]+)", "MB/s", "kb/s"),
        ("speed 9.4 Gbps", r"speed ([0-9.]+)", "Mbit/s", "Gbps"),
        ("speed 9.4 Gbps", r"speed ([0-9.]+)", "GB/s", "Gbps"),
        ("speed 9.4 GBps", r"speed ([0-9.]+)", "MB/s", "GBps"),
        ("speed 94 Kbits/sec", r"speed ([0-9.]+)", "Mbit/s", "Kbits/sec"),
        ("speed 94 Mb/s", r"speed ([0-9.]+)", "MB/s", "Mb/s"),
        ("speed 94 kilobytes per second", r"speed ([0-9.]+)", "MB/s", "kilobytes per second"),
        ("speed 1.2G", r"speed ([0-9.]+)", "MB/s", "G"),
        ("size 1.2G", r"size ([0-9.]+)", "MiB", "G"),
        ("size 1.2 G bytes", r"size ([0-9.]+)", "MiB", "Gbytes"),
        ("size 12 MB/s", r"size ([0-9.]+)", "MB", "MB/s"),
        ("lat 812 ns", r"lat ([0-9.]+)", "us", "ns"),
        ("lat 812 nsec", r"lat ([0-9.]+)", "us", "nsec"),
        ("lat 3 milliseconds", r"lat ([0-9.]+)", "s", "milliseconds"),
        ("BenchmarkX 812 ns/op", r"X ([0-9.]+)", "us", "ns/op"),
        ("took 2m", r"took ([0-9.]+)", "s", "m"),
        ("took 2 minutes", r"took ([0-9.]+)", "s", "minutes"),
        ("12.3 kops/s", r"([0-9.]+)", "1/s", "kops/s"),
        ("12.3 K ops/s", r"([0-9.]+)", "1/s", "Kops/s"),
        ("12.3 kIOPS", r"([0-9.]+)", "1/s", "kIOPS"),
        ("740 requests/min", r"([0-9.]+)", "1/s", "requests/min"),
        ("1.2 Mpps", r"([0-9.]+)", "k/s", "Mpps"),
        ("12 MB/s", r"([0-9.]+)", "1/s", "MB/s"),
        ("took 812 ms", r"took ([0-9.]+)", "1", "ms"),
        ("Transfer rate:  1234.5 [Kbytes/sec] received", r"rate: +([0-9.]+)", "MB/s", "Kbytes/sec"),
        ("Transfer rate:  1234.5 [Kbytes/sec] received", r"rate: +([0-9.]+) \S+ received", "MB/s", "Kbytes/sec"),
        ("12.3   KiB/s", r"([0-9.]+)", "MiB/s", "KiB/s"),
        ("clat (usec): min=1\n  lat (msec): min= 1, max=30, avg=12.3, stdev=1", r" lat .*avg=([0-9.]+)", "us", "msec"),
        ("Latency [ns]: avg 12", r"avg ([0-9.]+)", "us", "ns"),
        ("bw (  KiB/s): min= 4, max=50, per=100.00%, avg=49300.21", r"bw .*avg=([0-9.]+)", "MiB/s", "KiB/s"),
        ("Latency [ns] of all reads: 12", r"reads: ([0-9.]+)", "us", "ns"),
        ("12.345  ops/ms", r"([0-9.]+)", "1/s", "ops/ms"),
        ("1.234 M/sec", r"([0-9.]+)", "1/s", "M/sec"),
        ("12.3/min", r"([0-9.]+)", "1/s", "/min"),
        ("12.3 per min", r"([0-9.]+)", "1/s", "per min"),
        ("12.3 million ops/sec", r"([0-9.]+)", "1/s", "millionops/sec"),
        ("12.3 million", r"([0-9.]+)", "1", "million"),
        ("900 Kilobytes/s", r"([0-9.]+)", "MB/s", "Kilobytes/s"),
        ("5 min 30 s", r"([0-9.]+) \S+ 30", "s", "min"),
        ("5 MiB/s", r"([0-9.]+)", "MB/s", "MiB/s"),
        ("speed 998 MB/s", r"speed ([0-9.]+) .B", "1", "MB/s"),
    ],
)
def test_another_unit_beside_the_number_is_a_fault(out: str, find: str, unit: str, follows: str) -> None:
    with pytest.raises(
        WorkloadError, match=rf"'{re.escape(follows)}' is printed beside .*, and its unit is {re.escape(unit)}"
    ):
        value_of(out, find, unit)


@pytest.mark.parametrize(
    ("out", "find", "unit", "value"),
    [
        (DD % "895 MB/s", r"copied, .* s, ([0-9.]+)", "MB/s", 895e6),
        (DD % "1.2 GB/s", r"copied, .* s, ([0-9.]+) GB/s", "GB/s", 1.2e9),
        ("IOPS=998, BW=4MiB/s", r"IOPS=([0-9.]+)", "1/s", 998),
        ("IOPS=12.3k", r"IOPS=([0-9.]+)k", "k/s", 12300),
        ("IOPS=12.3k", r"IOPS=([0-9.]+)k", "1", 12.3),
        ("1.2M rows", r"([0-9.]+)", "M", 1.2e6),
        ("took 812 ms", r"took ([0-9.]+)\s+ms", "1", 812),
        ("took 12 s", r"took ([0-9.]+)", "1", 12),
        ("94.1 Mbps", r"([0-9.]+)", "Mbit/s", 94.1e6 / 8),
        ("Transfer rate:  1234.5 [Kbytes/sec] received", r"([0-9.]+) \[Kbytes/sec\] received", "kB/s", 1234.5e3),
        ("Requests per second:    1234.5 [#/sec] (mean)", r"second: +([0-9.]+)", "1/s", 1234.5),
        ("lat (usec): min=1\n lat (msec): min= 1, avg=12.3, stdev=1", r" lat .*avg=([0-9.]+)", "ms", 0.0123),
        ("time (s), size (kB): 12.3", r"kB\): ([0-9.]+)", "kB", 12300),
        ("time (s), rate: 12.3", r"rate: ([0-9.]+)", "MB/s", 12.3e6),
        ("lat (usec)\nsum 12.3", r"sum ([0-9.]+)", "ms", 0.0123),
        ("812.0 ns/op  512 B/op", r"([0-9.]+) ns", "1", 812),
        ("812.0 ns/op  512 B/op", r"([0-9.]+) B/op", "B", 512),
        ("512 bytes per op", r"([0-9.]+)", "B", 512),
        ("= 332.2 MB/sec", r"= +([0-9.]+) MB", "1", 332.2),
        ("Latency   635.91us", r"Latency +([0-9.]+)(?:us)", "1", 635.91),
        ("537 MB/s", r"([0-9.]+)\s*(?:GB|MB)/s", "1", 537),
        ("944 Mbits/sec", r"([0-9.]+) Mbits", "1", 944),
        ("4 thread(s), latency_ms: 12.3", r"ms: ([0-9.]+)", "ms", 0.0123),
        ("time(s)=10.0 p99_ms=12.3", r"p99_ms=([0-9.]+)", "ms", 0.0123),
        ("rate(MB/s): 12 rx_bytes: 500", r"rx_bytes: ([0-9.]+)", "B", 500),
        ("time (h:mm:ss): 12.3", r": ([0-9.]+)$", "s", 12.3),
        ("latency_ms: 12.3 (min 1.0, max 50.0)", r"latency_ms: ([0-9.]+)", "ms", 0.0123),
        ("avg: 5 (s.d. 7)", r"avg: ([0-9.]+)", "ms", 0.005),
        ("lat avg: 12.3 Min: 4", r"avg: ([0-9.]+)", "ms", 0.0123),
        ("avg=12.3 min=1.0", r"avg=([0-9.]+)", "ms", 0.0123),
        ("avg 12.3 min 1.0 max 5", r"avg ([0-9.]+)", "ms", 0.0123),
        ("elapsed=12.3 kb=500", r"elapsed=([0-9.]+)", "s", 12.3),
        ("requests: 400 ms: 120.1", r"requests: ([0-9]+)", "1", 400),
        ("[ 10s ] thds: 4 ktps: 99.5", r"thds: ([0-9]+)", "1", 4),
        ("12.345  ops/ms", r"([0-9.]+)", "k/s", 12345),
        ("12.3/s", r"([0-9.]+)", "1/s", 12.3),
        ("rate: 12.3 million", r"([0-9.]+)", "M", 12.3e6),
        ("1.5 PB", r"([0-9.]+)", "PiB", 1.5 * 2**50),
        ("bw (  KiB/s): min= 4, max=50, per=100.00%, avg=49300.21", r"bw .*avg=([0-9.]+)", "KiB/s", 49300.21 * 1024),
        ("256 bytes      12345.67k", r"([0-9.]+)k", "kB/s", 12345.67e3),
        ("94.1 Mbits/sec", r"([0-9.]+)\s+Mbits\/sec", "Mbit/s", 94.1e6 / 8),
        ("94.1 mb/s", r"([0-9.]+)", "MB/s", 94.1e6),
        ("94.1 Mb/s", r"([0-9.]+) Mb", "MB/s", 94.1e6),
        ("94.1M", r"([0-9.]+)", "Mbit/s", 94.1e6 / 8),
        ("1.5G", r"([0-9.]+)", "GiB", 1.5 * 2**30),
        ("1.5Gi", r"([0-9.]+)", "GiB", 1.5 * 2**30),
        ("5 min", r"([0-9.]+)", "min", 300),
        ("5m", r"([0-9.]+)", "min", 300),
        ("12.3 ops", r"([0-9.]+)", "1/s", 12.3),
        ("time 12.3 bytes 500", r"time ([0-9.]+)", "ms", 0.0123),
        ("size 12 M processors", r"size ([0-9.]+)", "1", 12),
        ("5 MB/sec", r"([0-9.]+)", "MiB/s", 5 * 2**20),
        ("5 req/s", r"([0-9.]+)", "1/s", 5),
        ("120 Mio", r"([0-9.]+)", "MB/s", 120e6),
        ("5 ms later", r"([0-9.]+) ms", "ms", 0.005),
        ("12 M4 processors", r"^([0-9]+)", "1", 12),
        ("100%", r"([0-9]+)", "%", 100),
    ],
)
def test_the_same_unit_and_words_are_none(out: str, find: str, unit: str, value: float) -> None:
    assert value_of(out, find, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("find", "unit", "named"),
    [
        (r"([0-9.]+) GB/s", "MB/s", "GB/s"),
        (r"([0-9.]+)\s*GB\/s", "MB/s", "GB/s"),
        (r"(?:speed ([0-9.]+)) KB/s", "MB/s", "KB/s"),
        (r"([0-9.]+) ms", "s", "ms"),
        (r"([0-9.]+) MiB/s", "MB/s", "MiB/s"),
        (r"([0-9.]+) \[Kbytes/sec\]", "MB/s", "Kbytes/sec"),
    ],
)
def test_a_pattern_does_not_name_another_unit_than_the_metric(find: str, unit: str, named: str) -> None:
    with pytest.raises(ValidationError, match=f"find names '{named}' behind its group, and the unit is {unit}"):
        asked({"find": find, "unit": unit})
    assert asked({"find": find, "unit": "1"}).find == find


def test_a_record_that_is_older_than_this_keeps_its_metrics() -> None:
    assert set(found_metrics({"rate": {"find": r"([0-9.]+) GB/s", "unit": "MB/s"}})) == {"rate"}


@pytest.mark.parametrize(
    "find",
    [
        r"([0-9.]+) GB?/s",
        r"([0-9.]+)k?",
        r"([0-9.]+) [kM]B/s",
        r"([0-9.]+).*GB/s",
        r"([0-9.]+)[kMG]",
        r"([0-9.]+) B",
        r"([0-9.]+) h",
    ],
)
def test_what_a_pattern_leaves_open_contradicts_no_unit(find: str) -> None:
    assert asked({"find": find, "unit": "MB/s"}).find == find


PARTS = st.lists(
    st.sampled_from(["a", r"\(", r"\)", "[()]", "[^)(]", "[]()]", r"[\]()]", "(?:b)", "(?=c)", "(?:(?:d))", r"\\"])
).map("".join)


@given(PARTS, PARTS, PARTS)
def test_the_only_group_of_a_pattern_is_found(ahead: str, within: str, behind: str) -> None:
    for begin in ("(", "(?P<name>"):
        for around, end in (("", ""), ("(?:", ")"), ("(?:x(?i:", "){2})")):
            pattern = f"{ahead}{around}{begin}{within}){end}{behind}"
            assert re.compile(pattern).groups == 1
            assert sides(pattern) == (ahead + around, end + behind)
            for letter in "1.,:m'e)([]":
                fault_of_group(pattern, "5", f"1{letter}", f"{letter}1")


@pytest.mark.parametrize("pattern", [r"(?x) n ([0-9]+) # a) first", r"(?#[)([0-9]+)", r"(?ix:n ([0-9]+))"])
def test_a_pattern_has_no_comments(pattern: str) -> None:
    with pytest.raises(ValidationError, match="has a comment, or the flag x"):
        FoundMetric.model_validate({"find": pattern})
    assert FoundMetric.model_validate({"find": r"\(?#([0-9]+)"}).find is not None


def test_tables_of_csv_end_at_an_empty_line() -> None:
    out = "name,reads,writes\n\na,1,2\n\nname,latency,p99\nb,3,4\n"
    metrics: dict[str, Any] = {"rate": FoundMetric.model_validate({"csv": "reads", "row": "b"})}
    with pytest.raises(WorkloadError, match="there are 0 lines of CSV that begin with 'b'"):
        figures_in([Printed(out, "")], metrics)
    assert figures_in([Printed(out, "")], {"rate": FoundMetric.model_validate({"csv": "reads"})}) == {"rate": 1}


def test_json_may_begin_with_a_mark_of_its_encoding() -> None:
    found = FoundMetric.model_validate({"json": ".qps"})
    assert figures_in([Printed('\ufeff{"qps": 5}\n', "")], {"rate": found}) == {"rate": 5}
