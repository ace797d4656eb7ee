"""Exactly one report, and numbers that are amounts: what all parsers of tools' texts have in common.

The rule: a text with two reports is refused, as nobody knows which is meant; it names how many there are. A number is
finite and 0 or above, and neither text nor a truth value. What a tool says before its JSON is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.bonnie import parse_bonnie
from vmlab.workloads.kinds.jvm import parse_suite
from vmlab.workloads.kinds.memcpy import parse_mbw
from vmlab.workloads.kinds.system import parse_system
from vmlab.workloads.pace import told_latencies
from vmlab.workloads.programs import parse_account
from vmlab.workloads.reports.ab_report import parse_ab, parse_percentiles
from vmlab.workloads.reports.fio_report import parse_fio
from vmlab.workloads.reports.iperf3_report import parse_iperf3
from vmlab.workloads.reports.sysbench_report import DatabaseReport, MemoryReport, Report, parse_sysbench
from vmlab.workloads.verification import last_object, only_document

parse_report, parse_memory_report, parse_database_report = (
    partial(parse_sysbench, part) for part in (Report, MemoryReport, DatabaseReport)
)
parse_client = partial(parse_iperf3, side="iperf3's client")
PARSERS: list[tuple[Callable[[str], object], str]] = [
    (parse_report, "sysbench-cpu.txt"),
    (parse_report, "sysbench-memory.txt"),
    (parse_memory_report, "sysbench-memory.txt"),
    (parse_database_report, "oltp-paced.txt"),
    (parse_ab, "ab-404.txt"),
    (parse_ab, "ab-merged.txt"),
    (partial(parse_percentiles, requests=300), "ab-percentiles.csv"),
    (parse_bonnie, "bonnie.txt"),
    (parse_mbw, "mbw.txt"),
    (parse_fio, "fio-randrw.json"),
    (parse_client, "iperf3-tcp-client.json"),
    (parse_suite, "jvm.txt"),
    (parse_system, "system.txt"),
    (lambda text: last_object(text, "stream"), "stream.txt"),
]
_SEVERAL = r"\b2 reports|twice|not one$|not one report|several JSON documents|\b2 lines of values|cannot be read"


@pytest.mark.parametrize(("parse", "name"), PARSERS)
def test_two_reports_are_refused(captured: Path, parse: Callable[[str], object], name: str) -> None:
    text = (captured / name).read_text()
    assert parse(text)
    with pytest.raises(WorkloadError, match=_SEVERAL):
        parse(f"{text.rstrip()}\n{text}")


@pytest.mark.parametrize("name", ["sysbench-cpu.txt", "ab-merged.txt"])
def test_a_report_behind_one_that_was_cut_off_is_refused(captured: Path, name: str) -> None:
    text = (captured / name).read_text()
    begun = text[: text.index("\n\n") + 2]
    parse = parse_ab if name.startswith("ab") else parse_report
    with pytest.raises(WorkloadError, match=r"(sysbench|ab) printed 2 reports, not one"):
        parse(f"{begun}{text}")


def test_reports_of_several_cpus_in_one_text_are_refused_by_their_number(captured: Path) -> None:
    """As a program prints them that runs sysbench on each CPU in turn."""
    text = (captured / "sysbench-memory.txt").read_text()
    with pytest.raises(WorkloadError, match="sysbench printed 3 reports, not one"):
        parse_report("".join(f"CPU {number} {text[text.index('sysbench ') :]}\n" for number in range(3)))


@pytest.mark.parametrize(("parse", "name"), [(parse_fio, "fio-randrw.json"), (parse_client, "iperf3-udp-client.json")])
def test_what_stands_around_the_json_is_passed_over(captured: Path, parse: Callable[[str], object], name: str) -> None:
    text = (captured / name).read_text()
    before = 'warning: unable to set "a { b"\nfio: note: both iodepth >= 1 and synchronous I/O engine are selected\n'
    assert parse(f"{before}{text}") == parse(text) == parse(f"{text}\nfio: end\n") == parse(f"{before}{text}\r\n")
    assert parse(json.dumps(json.loads(text))) == parse(text)
    assert only_document(f"{before}{text}", "fio")[1] == before.strip()


@pytest.mark.parametrize("parse", [parse_fio, parse_client])
@pytest.mark.parametrize("text", ['{"a": ' + "[" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000])
def test_json_that_is_too_deep_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(WorkloadError, match="should print a JSON document"):
        parse(text)
    with pytest.raises(WorkloadError, match="should end with a JSON object"):
        last_object(text, "stream")


BAD: list[Any] = [-1, True, "7", None, [1], float("nan"), float("inf"), -1.5]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("place", ["total_ios", "io_bytes", "runtime", "short_ios", "lat_ns.mean", "percentile"])
def test_what_is_no_amount_is_no_figure_of_fio(captured: Path, place: str, value: object) -> None:
    document = json.loads((captured / "fio-randread.json").read_text())
    of: dict[str, Any] = document["jobs"][0]["read"]
    if place == "percentile":
        of["lat_ns"]["percentile"]["95.000000"] = value
    elif place == "lat_ns.mean":
        of["lat_ns"]["mean"] = value
    else:
        of[place] = value
    with pytest.raises(WorkloadError, match="fio"):
        parse_fio(json.dumps(document))


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("key", ["seconds", "bytes", "retransmits"])
def test_what_is_no_amount_is_no_figure_of_iperf3(captured: Path, key: str, value: object) -> None:
    document = json.loads((captured / "iperf3-tcp-client.json").read_text())
    document["end"]["sum_sent"][key] = value
    if (key, value) == ("retransmits", None):
        assert parse_client(json.dumps(document))
        return
    with pytest.raises(WorkloadError, match="iperf3's client"):
        parse_client(json.dumps(document))


@pytest.mark.parametrize("value", BAD)
def test_what_is_no_amount_is_none_of_the_lab_s_own_programs(value: object) -> None:
    account = {"seconds": 1.5, "read": 1, "written": 2, "open": {}}
    assert parse_account(json.dumps(account)).read == 1
    for key in ("seconds", "read", "written"):
        with pytest.raises(WorkloadError, match="the account of the client"):
            parse_account(json.dumps({**account, key: value}))
    with pytest.raises(WorkloadError, match="latenc"):
        told_latencies(json.dumps({"latencies": [0.5, value]}), 2, "the client")


@pytest.mark.parametrize(
    ("lacking", "named"), [(("percentile",), "50, 95, 99"), (("percentile", "95.000000"), "95"), ((), "")]
)
def test_fio_without_percentiles_is_told_which_option_gives_them(
    captured: Path, lacking: tuple[str, ...], named: str
) -> None:
    document = json.loads((captured / "fio-randrw.json").read_text())
    place = document["jobs"][0]["write"]["lat_ns"]
    for key in lacking[:-1]:
        place = place[key]
    if not lacking:
        assert parse_fio(json.dumps(document)).write.percentiles.keys() == {50, 95, 99}
        return
    del place[lacking[-1]]
    words = f"no percentiles {named} of the latency of its writes .lat_ns.; fio gives them with lat_percentiles=1"
    with pytest.raises(WorkloadError, match=words):
        parse_fio(json.dumps(document))


def test_a_key_that_fio_lacks_is_named(captured: Path) -> None:
    document = json.loads((captured / "fio-randrw.json").read_text())
    del document["jobs"][0]["read"]["drop_ios"]
    with pytest.raises(WorkloadError, match="fio's JSON cannot be read: it has no 'drop_ios'"):
        parse_fio(json.dumps(document))
