"""`vmlab export` and `import` on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

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
        (["-o", "x.pdf"], "tells no format; use --format csv"),
        (["-o", "x.xml", "--samples"], "--samples does not go with the format junit"),
        (["-o", "x", "--format", "vmlab", "--samples"], "does not go with"),
        (["-o", "x", "--format", "fio"], "no report of fio"),
        (["nothing", "-o", "x.csv"], "no run is called"),
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
    assert "pip install 'vmlab[parquet]'" in capsys.readouterr().err
    assert (tmp_path / "x.parquet").read_text() == "before", "an older file stays where the new one fails"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["export", "-o", str(tmp_path / "none" / "x.csv")]) == 3
    assert "No such file or directory" in capsys.readouterr().err
