"""The Python API: the figures of a run as frames, and a comparison, as the command line has them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars
import pytest

import vmlab
import vmlab.api
from tests.promises import hold, promised_of
from tests.store.stories import Story
from tests.tui.conftest import RECORDED
from vmlab.cli.main import command_line
from vmlab.model.places import runs_folder

RUN = "20261121-143000-tile-aaaa"
PROMISED = Path(__file__).with_name("promised_v1.txt")
NOT_PROMISED = {"VmlabError": {"lines"}}


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def cached() -> vmlab.Run:
    """A run of eight repeats, in which writeback takes half as long as none."""
    story = Story(runs_folder() / RUN / "run.sqlite", run=RUN)
    story.begin({"cache": ["none", "writeback"]}, cells=16)
    for repeat in range(1, 9):
        for cache, seconds in (("none", 10 + repeat / 10), ("writeback", 5 + repeat / 20)):
            story.cell({"cache": cache}, {"web": seconds}, wall=seconds + 1, repeat=repeat)
    story.end()
    return vmlab.open_run("last")


def test_importing_the_package_loads_nothing_of_it() -> None:
    program = "import sys, vmlab; print([one for one in sys.modules if one.startswith(('vmlab.', 'polars'))])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_package_has_the_names_of_the_api_and_no_others() -> None:
    assert set(vmlab.api.__all__) <= set(dir(vmlab))
    assert {name: getattr(vmlab, name) for name in vmlab.api.__all__} == {
        name: getattr(vmlab.api, name) for name in vmlab.api.__all__
    }
    with pytest.raises(AttributeError, match="no attribute 'open_runs'"):
        _ = vmlab.open_runs  # type: ignore[attr-defined]


def test_nothing_that_was_promised_has_changed() -> None:
    now = [
        line
        for name in vmlab.api.__all__
        for line in promised_of(name, getattr(vmlab, name), NOT_PROMISED.get(name, ()), attribute_types=True)
    ]
    hold(now, PROMISED, 80, "this would break programs: with it, API_VERSION grows")


def test_the_page_lists_each_name_of_the_api() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text(encoding="utf-8")
    assert [name for name in vmlab.api.__all__ if f"`{name}" not in page] == []
    for kind in (vmlab.Run, vmlab.AttachedRun, vmlab.RunEvent, vmlab.Change, vmlab.Comparison, vmlab.Difference):
        names = [name for name in dir(kind) if not name.startswith("_")]
        assert [name for name in names if f"`{name}" not in page] == [], kind


def test_a_run_is_found_as_the_command_line_finds_it(cached: vmlab.Run) -> None:
    assert vmlab.runs() == [RUN] == [cached.id]
    assert vmlab.open_run(RUN[:12]) == vmlab.open_run(cached.path) == cached
    assert (cached.scenario, cached.size, cached.outcome) == ("tile", "smoke", "passed")
    assert cached.started is not None and cached.started.isoformat() == "2026-11-21T14:30:00+00:00"
    with pytest.raises(vmlab.VmlabError, match="no run is called 'elsewhere'"):
        vmlab.open_run("elsewhere")


def test_cells_have_their_axes_and_wall_clock(cached: vmlab.Run) -> None:
    cells = cached.cells()
    assert cells.height == 16
    row = cells.row(1, named=True)
    assert (row["cell"], row["repeat"], row["axis_cache"], row["cell_outcome"]) == (2, 1, "writeback", "passed")
    assert (row["wall_seconds"], row["accelerator"], row["reasons"]) == (6.05, "tcg", "")


def test_measurements_are_those_of_the_document(cached: vmlab.Run) -> None:
    frame = cached.measurements(cell=3).filter(polars.col("metric") == "run_time")
    assert frame.select("workload", "value", "unit").rows() == [("web", 10.2, "s")]
    document = cached.document(cell=3)
    assert [one["value"] for one in document["cells"][0]["measurements"]] == [10.2]
    assert cached.raw(cell=3)["outputs"][0]["text"] == "web took 10.2 s\n"
    for call in (cached.measurements, cached.samples, cached.document, cached.raw):
        with pytest.raises(vmlab.VmlabError, match=f"run {RUN} has no cell 17; it has 16"):
            call(17)


def test_samples_are_those_of_the_export(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    frame = vmlab.open_run(RECORDED).samples()
    assert command_line(["export", str(RECORDED), "--samples", "-o", str(tmp_path / "x.parquet")]) == 0
    assert frame.equals(polars.read_parquet(tmp_path / "x.parquet"))
    assert frame.height > 1000
    assert frame.schema["time"] == polars.Datetime("ms", "UTC")


def test_a_comparison_is_that_of_the_command_line(cached: vmlab.Run, capsys: pytest.CaptureFixture[str]) -> None:
    found = vmlab.compare(cached)
    assert command_line(["compare", "last", "--json"]) == found.exit_code == 0
    assert found.document() == json.loads(capsys.readouterr().out)
    assert (found.baseline, found.candidates, found.accelerators) == ("cache none", ("cache writeback",), ("tcg",))
    web = next(one for one in found.differences if one.workload == "web")
    assert (web.verdict, web.better, web.readings) == ("difference proven", True, 8)
    assert web.interval is not None and web.interval[0] <= web.interval[1] < -40
    assert web.percent == pytest.approx(-50, abs=0.5)
    row = found.frame().row(by_predicate=polars.col("workload") == "web", named=True)
    assert (row["interval_low"], row["interval_high"]) == web.interval
    assert (row["percent"], row["verdict"]) == (web.percent, web.verdict)


@pytest.mark.parametrize(("condition", "code"), [("web < -10 %", 1), ("web > +10 %", 0)])
def test_a_condition_gives_the_exit_code_of_the_command_line(cached: vmlab.Run, condition: str, code: int) -> None:
    assert vmlab.compare(cached, fail_if=[condition]).exit_code == code
    assert command_line(["compare", "last", "--fail-if", condition]) == code


def test_conditions_are_a_file_for_ci_and_differences_are_explained(
    cached: vmlab.Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = vmlab.compare(cached, fail_if=["web < -10 %"], explain=True)
    file = tmp_path / "gate.xml"
    assert command_line(["compare", "last", "--fail-if", "web < -10 %", "--explain", "--junit", str(file)]) == 1
    assert found.junit() == file.read_bytes()
    told = " ".join(capsys.readouterr().out.split())
    assert found.explanation and [one for one in found.explanation if " ".join(one.split()) not in told] == []
    plain = vmlab.compare(cached)
    assert plain.explanation == ()
    with pytest.raises(vmlab.VmlabError, match="fail_if names no condition"):
        plain.junit()


def test_the_knee_is_looked_for_by_a_share_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    run = vmlab.open_run(RECORDED)
    assert command_line(["show", str(RECORDED), "--knee", "70", "--json"]) == 0
    found = run.document(knee=70)
    assert found == json.loads(capsys.readouterr().out)
    assert found["scores"]["share_percent"] == 70 != run.document()["scores"]["share_percent"]


def test_two_cells_are_compared_by_name(cached: vmlab.Run) -> None:
    found = vmlab.compare("last:1", "last:2")
    web = next(one for one in found.differences if one.workload == "web")
    assert (found.candidates, web.interval, web.verdict) == (("last:2",), None, "one reading each")
    with pytest.raises(vmlab.VmlabError, match="list of conditions"):
        vmlab.compare(cached, fail_if="web > +10 %")
    with pytest.raises(vmlab.VmlabError, match="needs two runs"):
        vmlab.compare()


def test_without_polars_all_but_frames_is_there(cached: vmlab.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    assert vmlab.compare(cached).differences
    with pytest.raises(vmlab.VmlabError, match=r"frames need polars \(.+ install"):
        cached.cells()
