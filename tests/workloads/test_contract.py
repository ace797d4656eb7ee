"""What a kind declares of its metrics, and figures that do not agree with it."""

import re
from pathlib import Path

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.cpu import Cpu, CpuParams
from vmlab.workloads.metrics import Reading
from vmlab.workloads.registry import kinds
from vmlab.workloads.verification import last_words, read_from_a_guest
from vmlab.workloads.workload_steps import Collected, Finished

CPU = Cpu(CpuParams(threads=1))


def test_readings_have_the_units_of_the_declaration_in_its_order() -> None:
    values = {"latency_avg": 0.5, "events": 100, "run_time": 50.0, "events_per_second": 2.0}
    assert CPU.readings(Collected(values)) == (
        Reading("run_time", 50.0, "s", "less"),
        Reading("events", 100.0, "1", None),
        Reading("events_per_second", 2.0, "1/s", "more"),
        Reading("latency_avg", 0.5, "s", "less"),
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"run_time": 1.0, "speed": 2.0}, "a metric that it does not declare: speed"),
        ({"run_time": 1.0, "events": float("nan")}, "gave nan for events"),
        ({"run_time": float("inf")}, "gave inf for run_time"),
        ({"run_time": 1e150}, r"gave 1e\+150 for run_time"),
        ({"run_time": 10**400}, "gave 10+ for run_time"),
        ({"events": 1.0}, "gave no run_time"),
    ],
)
def test_figures_that_are_not_declared_fail_the_workload(values: dict[str, float], reason: str) -> None:
    with pytest.raises(WorkloadError, match=f"^kind cpu .*{reason}"):
        CPU.readings(Collected(values))


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_declares_its_metrics_as_tables_expect(kind: str) -> None:
    metrics = kinds()[kind].metrics
    assert next(iter(metrics)) == "run_time"
    assert (metrics["run_time"].unit, metrics["run_time"].better) == ("s", "less")
    for name, metric in metrics.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert metric.label
        assert metric.unit not in ("1/s", "B/s") or metric.better == "more", f"more of the rate {name} is better"
    assert len({metric.label for metric in metrics.values()}) == len(metrics), "labels tell metrics apart"


@pytest.mark.parametrize("kind", kinds())
def test_the_throughput_of_every_kind_is_a_rate_or_the_run_time(kind: str) -> None:
    name = kinds()[kind].throughput
    # A score is what was done in a time that is fixed.
    is_rate = kinds()[kind].metrics[name].unit in ("1/s", "B/s") or kinds()[kind].is_timed({})
    assert name == "run_time" or is_rate


@pytest.mark.parametrize("kind", kinds())
def test_the_page_on_workloads_has_a_line_for_each_metric(kind: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "workloads.md").read_text()
    section = re.search(rf"^## {kind}: .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    rows = {}
    for names, unit in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\S+) \|", section[0], re.MULTILINE):
        rows.update(dict.fromkeys(re.findall(r"\w+", names), unit))
    assert rows == {name: metric.unit for name, metric in kinds()[kind].metrics.items()}


@pytest.mark.parametrize(
    ("stdout", "stderr", "words"),
    [
        ("", "", ""),
        ("begun\n", "no room\n\n", ": no room"),
        ('disk full\n\n{"status": 1}\n', "", ": disk full"),
        ('{"status": 1}\n', "", ': {"status": 1}'),
    ],
)
def test_the_last_words_of_a_client_are_those_for_people(stdout: str, stderr: str, words: str) -> None:
    assert last_words(Finished(1, 1.0, stdout, stderr)) == words


def test_what_a_guest_printed_and_nobody_can_read_is_its_workloads_fault() -> None:
    with pytest.raises(WorkloadError, match=r"^what ab printed cannot be read: "), read_from_a_guest("ab"):
        int("9" * 5000)
