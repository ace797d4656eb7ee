"""Go's benchmark format, read back by its specification: https://go.dev/design/14313-benchmark-format."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

from tests.store.stories import HOST, Story
from tests.tui.conftest import RECORDED
from tests.tui.fleet_store import fleet_store
from vmlab.analysis.document import run_document
from vmlab.model.run import WARM_UP
from vmlab.report.exports.benchstat import write_benchstat
from vmlab.report.exports.tidy import Exported
from vmlab.store.reader import RunReader


class Result(NamedTuple):
    """A line of the format, under the configuration that stands before it."""

    base: str
    parts: Mapping[str, str]
    value: float
    unit: str
    configuration: Mapping[str, str]


def parsed(text: str) -> tuple[list[Result], dict[str, str]]:
    """The results, and which end of each unit is better."""
    results, better, configuration = list[Result](), dict[str, str](), dict[str, str]()
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        if line.startswith("Benchmark") and (line[9] == "/" or line[9].isupper()):
            name, count, number, unit = line.split()
            assert count == "1" and not name.rpartition("-")[2].isdecimal()
            base, *parts = name.removeprefix("Benchmark").split("/")
            named = [part.partition("=") for part in parts]
            assert all(sign for _, sign, _ in named) and len({key for key, _, _ in named}) == len(named)
            shown = {unquote(key): unquote(word) for key, _, word in named}
            results.append(Result(unquote(base), shown, float(number), unit, dict(configuration)))
        elif line.startswith("Unit "):
            _, unit, word = line.split()
            assert better.setdefault(unit, word) == word and not results
        elif colon and key[:1].islower() and not any(sign.isspace() or sign.isupper() for sign in key):
            assert not value or value.startswith(" ")
            configuration[key] = value.strip()
        else:
            assert not line or line.startswith("# "), line
    return results, better


def written(*runs: Exported) -> tuple[list[Result], dict[str, str], str]:
    """The results, the units, and the text itself."""
    file = BytesIO()
    write_benchstat(runs, file)
    text = file.getvalue().decode()
    return *parsed(text), text


def test_all_figures_of_workloads_are_read_back() -> None:
    with RunReader(RECORDED) as reader:
        results, better, _ = written(Exported(reader))
        document = run_document(reader)
    factors = {"ns/op": 1e-9, "ns": 1e-9}
    of_workloads = [one for one in results if one.base]
    taken = [(cell, one) for cell in document.cells for one in cell.measurements if one.value is not None]
    assert [(one.base, one.parts["metric"], one.parts["cache"], one.parts["tile"]) for one in of_workloads] == [
        (one.workload.capitalize(), one.metric, cell.axes["cache"], str(one.tile)) for cell, one in taken
    ]
    values = [one.value * factors.get(one.unit, 1.0) for one in of_workloads]
    assert values == pytest.approx([one.value for _, one in taken])
    walls = [one for one in results if one.parts["metric"] == "wall_seconds"]
    assert [one.value for one in walls] == [pytest.approx((cell.wall_seconds or 0) * 1e9) for cell in document.cells]
    assert better["ns/op"] == "better=lower" and better["B/s"] == better["op/s"] == "better=higher"
    assert {one.configuration["scenario"] for one in results} == {"tile"}
    assert results[0].configuration["kernel"] == document.run.host["kernel"]
    assert not {"run", "started", "side"} & results[0].configuration.keys()


def test_only_cells_that_passed_and_count_are_written(tmp_path: Path) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, cells=4)
    for repeat, outcome in ((WARM_UP, "passed"), (1, "invalid"), (2, "failed"), (3, "passed")):
        story.start_cell({"cache": "none"}, repeat)
        story.measure("web", 10.0 + repeat)
        story.end_cell(outcome, [], wall=20.0 + repeat)
    with RunReader(story.end("failed", 1)) as reader:
        results, _, text = written(Exported(reader))
    assert [one.value for one in results if one.base == "Web"] == [13e9]
    assert [one.value for one in results if not one.base] == [23e9]
    for cell, why in enumerate(("warm-up", "invalid", "failed"), 1):
        assert f"\n# cell {cell} is left out: {why}\n" in text


def test_hostile_names_and_values_stay_apart_and_in_their_line(tmp_path: Path) -> None:
    words = ["a b", "a_b", "a/b=c", "100%", "100%25", "x-8", "-5", "x\n1 2 ns/op\x1b[2J", "Ünï\u202ecode", ""]
    host = HOST | {"hostname": "h\ngoos: linux", "kernel": " "}
    story = Story(tmp_path / "run.sqlite", "two\nBenchmarkX 1 1 ns/op").begin({"metric": words}, host=host)
    for word in words:
        story.start_cell({"metric": word})
        story.measure("fs-2", 1.5)
        story.measure("9 x/y", 2.0, "m=n", "own unit/s\n")
        story.end_cell("passed", [], wall=3.0)
    with RunReader(story.end("passed", 0)) as reader:
        results, better, _ = written(Exported(reader))
    of_fs = [one for one in results if one.base == "Fs-2"]
    places = [one.parts["axis_metric"] for one in of_fs]
    assert len(set(places)) == len(of_fs) == len(words)
    assert places[:7] == words[:7] and places[-1] == ""
    other = [one for one in results if one.parts.get("workload") == "9 x/y"]
    assert len(other) == len(words)
    assert {(one.base, one.parts["metric"], one.value) for one in other} == {("", "m=n", 2.0)}
    assert {one.unit for one in other} <= better.keys() | {"own%20unit/s%0A"}
    assert {one.configuration["host"] for one in results} == {r"h\ngoos: linux"}
    assert "goos" not in results[-1].configuration


def test_sides_and_hosts_are_configuration(tmp_path: Path) -> None:
    story = Story(tmp_path / "one/run.sqlite").begin({"cache": ["none"]})
    story.start_cell({"cache": "none"})
    story.measure("web", 1.0)
    story.end_cell("passed", [], wall=2.0)
    fleet = fleet_store(tmp_path / "run.sqlite", "20261125-120000-tile-f1ee")
    with RunReader(fleet) as reader, RunReader(story.end("passed", 0)) as other:
        results, _, text = written(Exported(reader, "A"), Exported(other, "B"))
    assert {(one.configuration["side"], one.configuration["host"]) for one in results} >= {
        ("A", "hv1"),
        ("A", "hv2"),
        ("B", HOST["hostname"]),
    }
    assert "# run 20261125-120000-tile-f1ee, started " in text
