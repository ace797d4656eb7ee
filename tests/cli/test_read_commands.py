"""The reading commands: data on standard output, one clear line and an exit code for the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.model.places import runs_folder, shipped_scenarios
from vmlab.model.quantities import format_bytes


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def _run(name: str, faster: float = 1.0) -> Path:
    story = Story(runs_folder() / name / "run.sqlite", run=name).begin({"cache": ["none", "writeback"]})
    story.cell({"cache": "none"}, {"web": 10.0 * faster}, wall=11.0)
    story.cell({"cache": "writeback"}, {"web": 4.0 * faster}, wall=5.0)
    return story.end()


def _said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command_line(list(arguments)) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_said(capsys, *arguments, "--json"))
    return document


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command_line(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def test_ls_lists_the_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    Story(runs_folder() / "20261121-150000-tile-bbbb" / "run.sqlite").close()
    listed = _json(capsys, "ls")
    assert listed["schema"] == "vmlab.runs/1"
    assert [(run["id"], run["outcome"]) for run in listed["runs"]] == [
        ("20261121-150000-tile-bbbb", "aborted"),
        ("20261121-143000-tile-aaaa", "passed"),
    ]
    assert listed["runs"][1]["started"] == "2026-11-21T14:30:00.000+00:00"
    assert "runner_pid" not in listed["runs"][1]
    lines = _said(capsys, "ls").splitlines()
    assert lines[2].split()[:6] == ["20261121-143000-tile-aaaa", "smoke", "passed", "2/2", "2026-11-21", "14:30"]
    assert lines[2].endswith(format_bytes(listed["runs"][1]["bytes"]))
    assert max(map(len, lines)) <= 80


def test_ls_scenarios_names_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    listed = _json(capsys, "ls", "--scenarios")["scenarios"]
    assert [entry["name"] for entry in listed] == sorted(path.stem for path in shipped_scenarios().glob("*.yaml"))
    assert all(Path(entry["path"]).is_file() and entry["summary"] for entry in listed)
    assert all("full" in entry["sizes"] for entry in listed)
    assert next(entry["sizes"] for entry in listed if entry["name"] == "tile")[-2:] == ["full", "published"]
    unsourced = ["cache-modes", "consolidation", "cpu-pinning", "disk-buses", "disk-io", "disk-places"]
    unsourced += ["huge-pages", "memory-sharing", "network-cards", "network-overlay"]
    assert [entry["name"] for entry in listed if not entry["source"]] == unsourced
    lines = _said(capsys, "ls", "--scenarios").splitlines()
    # Nothing is cut where the list goes to no terminal.
    assert all(any(entry["summary"] in line for line in lines) for entry in listed)


def test_show_is_a_table_or_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    assert "total wall clock  11.0       5.00   ? -54.5 %" in _said(capsys, "show", "last")
    document = _json(capsys, "show", "20261121")
    assert (document["schema"], len(document["cells"])) == ("vmlab.run/1", 2)
    assert [cell["cell"] for cell in _json(capsys, "show", "last", "--cell", "2")["cells"]] == [2]
    assert "cell 2 (cache writeback), repeat 1: passed" in _said(capsys, "show", "last:2")


def test_show_looks_for_the_knee_at_the_share_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    name = "20261121-143000-tile-aaaa"
    story = Story(runs_folder() / name / "run.sqlite", run=name).begin({"tiles": [1, 2]}, cells=12)
    for repeat in range(1, 7):
        for tiles, seconds in ((1, 10.0), (2, 18.0 + repeat / 10)):
            story.start_cell({"tiles": tiles}, repeat)
            for tile in range(1, tiles + 1):
                story.ran("web", tile, 0.0, seconds)
                story.took("web", tile, seconds)
            story.end_cell(wall=seconds)
    story.end()
    # Two tiles take 18.1 to 18.6 s where one takes 10: the second adds 20 / 18.1 - 1 to 20 / 18.6 - 1.
    adds = "tile 2 adds 9.0 % (7.5 to 10.5) of one tile's throughput"
    assert f"knee: cannot tell; {adds}, and the limit is 10 %" in " ".join(_said(capsys, "show").split())
    assert "knee: not reached up to 2 tiles; each further one adds more than 7 %" in _said(
        capsys, "show", "--knee", "7"
    )
    assert f"knee: after 1 tile; {adds}, less than 11 %, by 6 repeats" in _said(capsys, "show", "--knee", "11")
    scores = _json(capsys, "show", "--knee", "11")["scores"]
    assert (scores["share_percent"], scores["places"][0]["knee"]["after_tiles"]) == (11, 1)
    assert _json(capsys, "show")["scores"]["share_percent"] == 10
    assert _json(capsys, "show", "--cell", "2", "--knee", "7")["scores"]["share_percent"] == 7
    assert "--knee is about scores" in _refused(capsys, "show", "--knee", "7", "--raw")


def test_show_raw_is_what_the_tools_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    heading = "==> cell 1, tile 1, web on web-client: client stdout <==\nweb took 10.0 s\n"
    assert _said(capsys, "show", "last", "--raw").startswith(heading)
    outputs = _json(capsys, "show", "last", "--raw", "--cell", "2")["outputs"]
    assert [output["text"] for output in outputs] == ["web took 4.0 s\n"]


def test_show_reads_a_store_by_its_path(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere.sqlite"
    copied.write_bytes(_run("20261121-143000-tile-aaaa").read_bytes())
    assert _json(capsys, "show", str(copied))["run"]["id"] == "20261121-143000-tile-aaaa"


def test_compare_sets_runs_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    _run("20261121-150000-tile-bbbb", faster=0.5)
    compared = _json(capsys, "compare", "20261121-1430", "last")
    web = [row for row in compared["rows"] if row["workload"] == "web"]
    found = [row["candidates"][0]["difference"] for row in web]
    assert [(one["percent"], one["verdict"]) for one in found] == [(pytest.approx(-50.0), "one reading each")] * 2
    text = _said(capsys, "compare", "20261121-143000-tile-aaaa", "last")
    assert "cache writeback" in text and "? -50.0 %" in text
    assert "a proof takes 5 runs a side." in text
    assert "takes 5 runs a side at least" in _said(capsys, "compare", "20261121-143000-tile-aaaa", "last", "--explain")
    second = _json(capsys, "compare", "20261121-1430", "last", "--cell", "2")
    assert second["rows"][0]["baseline"]["mean"] == 4.0


def test_compare_sets_cells_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    lines = _said(capsys, "compare", "last:1", "last:2").splitlines()
    assert lines[3:] == [
        "CANNOT TELL YET: 1 repeat points to last:2 being faster than last:1, in all 2",
        "  metrics; a proof takes 7 repeats.",
        "",
        "metric                last:1  last:2  difference",
        "web (s)                 10.0    4.00   ? -60.0 %",
        "total wall clock (s)    11.0    5.00   ? -54.5 %",
        "",
        "Mind  guests emulated (TCG): compare, do not quote",
        "Signs ? too few measurements",
        "",
        "vmlab compare last:1 last:2 --explain  every metric and note",
        "vmlab report last:1 last:2 -o compared.html  to share",
    ]
    lines = _said(capsys, "compare", "last:1", "last:2", "--explain").splitlines()
    assert lines[7:9] == [
        "TCG: these values describe emulation, not a hypervisor with hardware support",
        "?: one measurement each, no spread known; to prove a difference in one of 2 metrics takes 7 repeats at least",
    ]
    alone = _said(capsys, "compare", "last:1", "last:2", "--quiet").splitlines()
    assert [line.split("  ")[0] for line in alone] == ["metric", "web (s)", "total wall clock (s)"]


def test_compare_sets_a_run_beside_itself_by_its_axis(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    compared = _json(capsys, "compare", "last")
    assert (compared["baseline"], compared["candidates"]) == ("cache none", ["cache writeback"])
    assert compared["rows"][0]["candidates"][0]["difference"]["verdict"] == "one reading each"


@pytest.mark.parametrize("value", ["writeback", "cache=writeback", "cache writeback"])
def test_compare_takes_another_side_as_the_baseline(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    compared = _json(capsys, "compare", "last", "--baseline", value)
    assert (compared["baseline"], compared["candidates"]) == ("cache writeback", ["cache none"])
    assert compared["rows"][0]["candidates"][0]["difference"]["percent"] == pytest.approx(150.0)


def test_the_baseline_of_several_runs_is_named_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = "20261121-143000-tile-aaaa", "20261121-150000-tile-bbbb"
    _run(before)
    _run(after, faster=0.5)
    assert _json(capsys, "compare", before, "last", "--baseline", "last")["baseline"] == "last"
    by_id = _json(capsys, "compare", before, "last", "--baseline", after)
    assert (by_id["baseline"], by_id["candidates"]) == ("last", [before])
    _run("20261121-140000-tile-cccc")
    groups = (f"{before},20261121-140000-tile-cccc", "last")
    assert _json(capsys, "compare", *groups, "--baseline", "last")["candidates"] == [groups[0]]


def test_compare_tests_the_figures_that_are_chosen_as_one_family(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(runs_folder() / "run" / "run.sqlite", run="run").begin({"cache": ["none", "writeback"]})
    for repeat in range(1, 9):
        for cache, times in (("none", 10.0), ("writeback", 4.0)):
            story.start_cell({"cache": cache}, repeat)
            for workload in ("web", "db"):
                story.measure(workload, times + repeat / 100)
                story.measure(workload, 20 * times + repeat, "latency_p95", "s")
            story.end_cell(wall=times)
    story.end()
    compared = _json(capsys, "compare", "run", "--metric", "web.latency_p95", "--metric", "run_time")
    rows = [(row["workload"], row["metric"], row["candidates"][0]["difference"]) for row in compared["rows"]]
    assert compared["chosen"] == ["web.latency_p95", "run_time"]
    assert [row[:2] for row in rows] == [("web", "run_time"), ("web", "latency_p95"), ("db", "run_time")]
    assert {one["family"] for *_, one in rows} == {3}
    alone = _json(capsys, "compare", "run", "--metric", "web.latency_p95")["rows"]
    assert [row["candidates"][0]["difference"]["family"] for row in alone] == [1]
    text = " ".join(_said(capsys, "compare", "run", "--metric", "latency_p95", "--explain").split())
    assert "chosen after the results were seen, they are exploratory" in text
    assert "total wall clock" not in text and "web latency_p95" in text and "db latency_p95" in text
    assert "exploratory" not in _said(capsys, "compare", "run")
    refused = _refused(capsys, "compare", "run", "--metric", "latency_p95", "--fail-if", "db.run_time > 0 %")
    assert "db has no such metric; it has latency_p95" in refused


def test_compare_explains_each_difference_and_names_the_noise(capsys: pytest.CaptureFixture[str]) -> None:
    for name, slower in (("20261121-143000-tile-aaaa", 1.0), ("20261121-150000-tile-bbbb", 1.1)):
        story = Story(runs_folder() / name / "run.sqlite", run=name).begin({"cache": ["none", "writeback"]}, cells=16)
        for repeat in range(1, 9):
            for cache, seconds in (("none", 10.0), ("writeback", 10.0 * slower)):
                own = seconds + 0.01 * ((repeat * 5 + len(cache)) % 7)
                story.cell({"cache": cache}, {"web": own}, own + 1, repeat)
        story.end()
    text = _said(capsys, "compare", "last", "--control", "20261121-143000-tile-aaaa", "--explain")
    assert (
        "this host's noise, up to which no difference is called real, by 8 blocks of run 20261121-143000-tile" in text
    )
    (line,) = (line for line in text.splitlines() if line.startswith("cache writeback against"))
    assert line.startswith(
        "cache writeback against cache none, under emulation (TCG): proven to be worse for web (+9.8 % ("
    )
    assert line.endswith("Which resource was at its limit is not known, as the host was not recorded.")
    assert _json(capsys, "compare", "last", "--control", "last")["noise"]["readings"] == 8


def test_compare_takes_several_runs_a_side(capsys: pytest.CaptureFixture[str]) -> None:
    for hour in range(8):
        _run(f"20261121-1{hour}0000-tile-{hour}", faster=(0.5 if hour % 2 else 1.0) + hour / 1000)
    before, after = (",".join(f"20261121-1{hour}" for hour in hours) for hours in (range(0, 8, 2), range(1, 8, 2)))
    compared = _json(capsys, "compare", before, after)
    web = compared["rows"][0]
    assert [one["run"] for one in web["baseline"]["readings"]] == [f"20261121-1{n}0000-tile-{n}" for n in (0, 2, 4, 6)]
    found = web["candidates"][0]["difference"]
    assert (found["test"], found["paired"], found["readings"], found["readings_needed"]) == (
        "Mann-Whitney",
        False,
        4,
        5,
    )
    assert (found["verdict"], found["better"]) == ("too few readings", None)
    text = _said(capsys, "compare", before, after, "--explain")
    assert "too few measurements: 4 runs a side; to prove a difference in one of 2 metrics takes 5 runs a side" in text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("show", "nothing"), "vmlab: no run is called 'nothing'; `vmlab ls` lists them\n"),
        (("show", "last:7"), "vmlab: run 20261121-143000-tile-aaaa has no cell 7; it has 2\n"),
        (("compare", "last:1"), "vmlab: a comparison needs two runs or cells; `vmlab ls` lists the runs\n"),
        (("compare", "last,nothing"), "vmlab: no run is called 'nothing'; `vmlab ls` lists them\n"),
        (("compare", "last:1", "last:9"), "vmlab: last:9: has no cell 9\n"),
        (
            ("compare", "last", "--baseline", "tiles=2"),
            "vmlab: --baseline 'tiles=2' is none of the sides; there are cache none, cache writeback\n",
        ),
        (
            ("compare", "last:1", "last:2", "--baseline", "20261121-143000-tile-aaaa"),
            "vmlab: --baseline '20261121-143000-tile-aaaa' names several of the sides; there are last:1, last:2\n",
        ),
        (
            ("compare", "last", "--metric", "web.latency"),
            "vmlab: --metric 'web.latency': no cell that is compared has this metric; there are run_time\n",
        ),
        (
            ("compare", "last", "--metric", "run_time", "--metric", "\x1b[2J\u202e" + "x" * 100),
            "vmlab: --metric '\\x1b[2J\\u202e" + "x" * 55 + "…': no cell that is compared has this metric; "
            "there are run_time, wall_seconds\n",
        ),
        (
            ("compare", "last", "--reference", "--metric", "run_time"),
            "vmlab: --baseline and --metric compare what was measured; they do not go with --reference\n",
        ),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    assert _refused(capsys, *arguments) == line


def test_a_file_that_is_no_store_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    path.write_text("notes " * 400)
    assert _refused(capsys, "show", str(path)) == f"vmlab: {path}: is not the store of a run\n"


def test_show_phases_prints_where_the_time_went(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    time = _json(capsys, "show", "last", "--phases")
    assert time["schema"] == "vmlab.phases/1"
    assert [cell["cell"] for cell in time["cells"]] == [1, 2]
    assert time["parts"]["execute"] == pytest.approx(16.0)
    (cell,) = _json(capsys, "show", "last:2", "--phases")["cells"]
    assert cell["parts"]["execute"] == pytest.approx(5.0)
    assert "execute" in _said(capsys, "show", "--phases")


def test_show_phases_refuses_what_it_cannot_show(capsys: pytest.CaptureFixture[str]) -> None:
    _run("20261121-143000-tile-aaaa")
    assert "has no cell 3" in _refused(capsys, "show", "last:3", "--phases")
    assert "--phases is about time alone" in _refused(capsys, "show", "--phases", "--raw")
