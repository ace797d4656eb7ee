"""`vmlab export` and `import` on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import polars
import pytest

from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.model.places import runs_folder
from vmlab.system.removal import remove_tree

RUN = "20261121-143000-tile-7f3a"


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    story = Story(runs_folder() / RUN / "run.sqlite").begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    story.end()


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("a.csv", b"run,"),
        ("a.parquet", b"PAR1"),
        ("a.jsonl", b"{"),
        ("a.prom", b"# TYPE"),
        ("a.xml", b"<?xml"),
        ("a.VMLAB", b"PK"),
    ],
)
def test_the_ending_tells_the_format(tmp_path: Path, name: str, begin: bytes) -> None:
    assert command_line(["export", "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_export_is_imported_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.vmlab"
    assert command_line(["export", RUN, "-o", str(file)]) == 0
    remove_tree(runs_folder() / RUN)
    assert command_line(["import", str(file)]) == 0
    assert capsys.readouterr().out == f"{RUN}\n"
    assert command_line(["import", str(file)]) == 3
    assert command_line(["show", RUN]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x.pdf"], "cannot infer the format from x.pdf; use --format benchstat, csv"),
        (["-o", "x.xml", "--samples"], "--samples does not go with the format junit"),
        (["-o", "x", "--format", "vmlab", "--samples"], "does not go with"),
        (["-o", "x", "--format", "fio"], "no report of fio"),
        (["nothing", "-o", "x.csv"], "no run is called"),
        (["last", "last", "-o", "x.csv"], "last is named twice"),
        (["last", "last:1", "-o", "x.csv"], "last:1 is named twice"),
        (["last:7", "-o", "x.csv"], "has no cell 7"),
        (["last:1", "-o", "x.vmlab"], "the format vmlab holds one whole run"),
        (["-o", "x.csv", "--run-label"], "--run-label is for the format openmetrics"),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line(["export", *arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_missing_extra_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "vmlab.report.exports.parquet", raising=False)
    (tmp_path / "x.parquet").write_text("before")
    assert command_line(["export", "-o", str(tmp_path / "x.parquet")]) == 3
    assert "-m pip install 'pyarrow>=17'" in capsys.readouterr().err
    assert (tmp_path / "x.parquet").read_text() == "before", "an older file stays where the new one fails"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["export", "-o", str(tmp_path / "none" / "x.csv")]) == 3
    assert "No such file or directory" in capsys.readouterr().err


def _another(run: str, seconds: float) -> None:
    story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": ["none", "writeback"]})
    for cache in ("none", "writeback"):
        story.cell({"cache": cache}, {"web": seconds}, wall=11.0)
    story.end()


@pytest.fixture
def nights() -> list[str]:
    names = [f"2026112{day}-143000-tile-7f3a" for day in range(2, 6)]
    for number, name in enumerate(names):
        _another(name, 10.0 + number)
    return names


def test_groups_of_runs_are_exported_with_their_side(tmp_path: Path, nights: list[str]) -> None:
    sides = [",".join(nights[:2]), ",".join(nights[2:])]
    for name in ("x.csv", "x.parquet", "x.jsonl", "x.prom", "x.xml"):
        assert command_line(["export", *sides, "-o", str(tmp_path / name)]) == 0
    frame = polars.read_parquet(tmp_path / "x.parquet").filter(polars.col("metric") == "run_time")
    assert frame["side"].unique(maintain_order=True).to_list() == sides
    assert frame.group_by("side", maintain_order=True).agg(polars.col("run").n_unique())["run"].to_list() == [2, 2]
    assert frame["value"].unique().sort().to_list() == [10.0, 11.0, 12.0, 13.0]
    assert polars.read_csv(tmp_path / "x.csv")["side"].unique(maintain_order=True).to_list() == sides
    series = [line for line in (tmp_path / "x.prom").read_text().splitlines() if line.startswith("vmlab_run_time")]
    assert len(series) == 8 and all(any(f'run="{run}"' in line for run in nights) for line in series)
    assert len((tmp_path / "x.xml").read_text().split("<testsuite ")) - 1 == 8


def test_one_cell_is_exported(tmp_path: Path, nights: list[str]) -> None:
    assert command_line(["export", f"{nights[0]}:2", "-o", str(tmp_path / "x.csv")]) == 0
    assert polars.read_csv(tmp_path / "x.csv")["cell"].unique().to_list() == [2]


@pytest.mark.parametrize("name", ["x.html", "x.md"])
def test_groups_of_runs_have_a_report(tmp_path: Path, nights: list[str], name: str) -> None:
    sides = [",".join(nights[:2]), ",".join(nights[2:])]
    assert command_line(["report", *sides, "-o", str(tmp_path / name)]) == 0
    text = (tmp_path / name).read_text()
    assert f"{sides[0]} against {sides[1]}" in text
    assert all(f"run {run} " in text for run in nights)


def test_two_cells_of_a_run_have_a_report(tmp_path: Path, nights: list[str]) -> None:
    assert command_line(["report", f"{nights[0]}:1", f"{nights[0]}:2", "-o", str(tmp_path / "x.md")]) == 0
    text = (tmp_path / "x.md").read_text()
    assert f"{nights[0]}:1 against {nights[0]}:2" in text and text.count(f"run {nights[0]} ") == 1
