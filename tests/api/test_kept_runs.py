"""What programs do with recorded runs, against what the command line does."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

import vmlab
from tests.store.stories import Story
from tests.tui.conftest import RECORDED
from vmlab.cli.main import command_line
from vmlab.model.places import runs_folder
from vmlab.system.removal import mark, remove_tree

RUN, OTHER = "20261121-143000-tile-aaaa", "20261121-153000-tile-bbbb"


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for run in (RUN, OTHER):
        story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": ["none"]})
        story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
        story.end()


def test_the_list_is_that_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["ls", "--json"]) == 0
    found = vmlab.listing()
    assert found == json.loads(capsys.readouterr().out)
    assert [run["id"] for run in found["runs"]] == [OTHER, RUN]


@pytest.mark.parametrize("name", ["x.csv", "x.prom", "x.xml"])
def test_an_export_is_that_of_the_command_line(tmp_path: Path, name: str) -> None:
    ours, theirs = tmp_path / "ours" / name, tmp_path / "theirs" / name
    for folder in (ours, theirs):
        folder.parent.mkdir()
    vmlab.export_runs(RUN, OTHER, output=ours)
    assert command_line(["export", RUN, OTHER, "-o", str(theirs)]) == 0
    assert ours.read_bytes() == theirs.read_bytes() != b""
    vmlab.export_runs(output=ours)
    assert command_line(["export", "last", "-o", str(theirs)]) == 0
    assert ours.read_bytes() == theirs.read_bytes()


def test_what_no_format_fits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(vmlab.VmlabError, match="there is no format 'tsv'"):
        vmlab.export_runs(RUN, output=tmp_path / "x", format="tsv")
    with pytest.raises(vmlab.VmlabError, match="a report has no format 'pdf'"):
        vmlab.report_runs(RUN, output=tmp_path / "x", format="pdf")
    with pytest.raises(vmlab.VmlabError, match="needs a run"):
        vmlab.report_runs(output=tmp_path / "x.md")
    assert list(tmp_path.glob("x*")) == []


def test_a_report_is_that_of_the_command_line(tmp_path: Path) -> None:
    vmlab.report_runs(RUN, OTHER, output=tmp_path / "ours.md")
    assert command_line(["report", RUN, OTHER, "-o", str(tmp_path / "theirs.md")]) == 0
    assert (tmp_path / "ours.md").read_bytes() == (tmp_path / "theirs.md").read_bytes() != b""


def test_a_run_goes_to_a_file_and_comes_back(tmp_path: Path) -> None:
    document = vmlab.open_run(RUN).document()
    vmlab.export_runs(RUN, output=tmp_path / "x.vmlab")
    with pytest.raises(vmlab.VmlabError, match="is here already"):
        vmlab.import_run(tmp_path / "x.vmlab")
    remove_tree(runs_folder() / RUN)
    imported = vmlab.import_run(tmp_path / "x.vmlab")
    assert (imported.id, imported.document()) == (RUN, document)


def test_names_are_given_and_taken() -> None:
    run = vmlab.open_run(RUN)
    vmlab.tag_run(run, "baseline")
    assert vmlab.tags() == {"baseline": (RUN,)}
    assert vmlab.open_run("baseline") == run
    vmlab.tag_run(f"{RUN},{OTHER}", "both")
    assert vmlab.tags()["both"] == (RUN, OTHER)
    vmlab.remove_tag("baseline")
    assert list(vmlab.tags()) == ["both"]
    with pytest.raises(vmlab.VmlabError, match="there is no name 'baseline'"):
        vmlab.remove_tag("baseline")
    with pytest.raises(vmlab.VmlabError, match="is the name of a scenario"):
        vmlab.tag_run(run, "tile")
    with pytest.raises(vmlab.VmlabError, match="is a cell"):
        vmlab.tag_run(f"{RUN}:1", "first")


def test_a_run_with_a_name_and_one_elsewhere_stay() -> None:
    vmlab.tag_run(RUN, "baseline")
    with pytest.raises(vmlab.VmlabError, match="has the name baseline"):
        vmlab.remove_runs(OTHER, RUN)
    with pytest.raises(vmlab.VmlabError, match="only these are removed"):
        vmlab.remove_runs(str(RECORDED))
    assert vmlab.runs() == [OTHER, RUN]


def test_a_run_is_removed_for_good_with_its_names(tmp_path: Path) -> None:
    vmlab.export_runs(str(RECORDED), output=tmp_path / "x.vmlab")
    run = vmlab.import_run(tmp_path / "x.vmlab")
    vmlab.tag_run(run, "recorded")
    assert vmlab.remove_runs(run, tagged=True) == [run.id]
    assert not run.path.parent.exists()
    assert (vmlab.tags(), vmlab.remove_runs()) == ({}, [])


def test_old_runs_are_removed_but_for_those_with_a_name() -> None:
    vmlab.tag_run(OTHER, "baseline")
    assert vmlab.remove_runs(older=timedelta(days=36500)) == []
    with pytest.raises(vmlab.VmlabError, match="by their names or by their age"):
        vmlab.remove_runs(RUN, older=timedelta(0))
    assert vmlab.runs() == [OTHER, RUN]
    for run in (RUN, OTHER):
        mark(runs_folder() / run, run)
    assert vmlab.remove_runs(older=timedelta(seconds=1)) == [RUN]
    assert vmlab.remove_runs(older=timedelta(seconds=1), tagged=True) == [OTHER]
    assert (vmlab.runs(), vmlab.tags()) == ([], {})


@pytest.mark.parametrize("options", [("--phases",), ("--phases", "--cell", "1"), ("--raw",)])
def test_documents_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    run = vmlab.open_run(RECORDED)
    assert command_line(["show", str(RECORDED), *options, "--json"]) == 0
    cell = 1 if "--cell" in options else None
    assert (run.raw if "--raw" in options else run.phases)(cell) == json.loads(capsys.readouterr().out)


def test_what_a_run_has_not_is_one_line() -> None:
    run = vmlab.open_run(RUN)
    with pytest.raises(vmlab.VmlabError, match="has no cell 2; it has 1"):
        run.phases(2)
    with pytest.raises(vmlab.VmlabError, match="names no publication"):
        run.reference()
    with pytest.raises(vmlab.VmlabError, match="is not a recording of the host"):
        run.advice()


def test_figures_are_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    found = vmlab.reparse_run(RUN, dry_run=True)
    command_line(["reparse", RUN, "--dry-run", "--json"])
    assert found == json.loads(capsys.readouterr().out)
    assert found["schema"] == "vmlab.reparse/1"
