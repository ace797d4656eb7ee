"""`vmlab tag`: names that runs have, wherever a run is named."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import ExitCode
from vmlab.model.places import runs_folder, state_folder
from vmlab.report.listing import runs_text
from vmlab.store.life import LOCK
from vmlab.store.run_list import list_runs
from vmlab.store.runs import all_tags, resolve_run, tagged, tags_folder
from vmlab.system.removal import remove_tree
from vmlab.system.text_width import WIDTH

OLD, NEW = "20261121-143000-tile-aaaa", "20261121-150000-tile-bbbb"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for run, slower in ((OLD, 1.0), (NEW, 2.0)):
        _run(run, slower)


def _run(run: str, slower: float = 1.0) -> None:
    story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": ["none", "writeback"]})
    for cache in ("none", "writeback"):
        story.cell({"cache": cache}, {"web": 10.0 * slower}, wall=11.0)
    story.end()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert command_line(list(arguments)) == 0
    words = capsys.readouterr()
    return words.out, words.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command_line(list(arguments)) == 2
    words = capsys.readouterr()
    assert words.out == "" and words.err.count("\n") == 1
    return words.err


def test_a_name_stands_for_its_run_wherever_one_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert said(capsys, "tag", OLD, "baseline") == ("", f"baseline is run {OLD}\n")
    for command in (["show", "baseline", "--json"], ["show", "baseline:2", "--json"]):
        assert json.loads(said(capsys, *command)[0])["run"]["id"] == OLD
    compared = json.loads(said(capsys, "compare", "baseline", "last", "--json")[0])
    assert (compared["baseline"], compared["rows"][0]["baseline"]["mean"]) == ("baseline", 10.0)
    _run("20261121-140000-tile-cccc")
    assert "baseline,last" in said(capsys, "compare", "baseline,last", "20261121-140000-tile-cccc")[0]
    said(capsys, "report", "baseline", "last", "-o", "x.md")
    said(capsys, "export", "baseline", "-o", "x.csv")
    assert OLD in (tmp_path / "x.csv").read_text()
    with pytest.raises(SystemExit) as ended:
        command_line(["attach", "baseline", "--json"])
    assert (ended.value.code, json.loads(capsys.readouterr().out)["run"]["id"]) == (0, OLD)
    assert resolve_run("baseline").parent.name == OLD


def test_several_runs_have_one_name_which_is_a_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    third = "20261121-160000-tile-cccc"
    _run(third, 3.0)
    assert said(capsys, "tag", f"{OLD},{NEW}", "base") == ("", f"base is runs {OLD}, {NEW}\n")
    assert tagged("base") == (OLD, NEW)
    assert said(capsys, "tag")[0] == f"base  {OLD}, {NEW}\n"
    assert json.loads(said(capsys, "tag", "--json")[0])["tags"] == [
        {"name": "base", "run": None, "runs": [OLD, NEW], "here": True}
    ]
    row = json.loads(said(capsys, "compare", "base", third, "--json")[0])["rows"][0]
    assert [one["run"] for one in row["baseline"]["readings"]] == [OLD, NEW]
    said(capsys, "report", "base", third, "-o", "x.md")
    assert f"# base against {third}".replace("-", "") in (tmp_path / "x.md").read_text().replace("-", "")
    said(capsys, "export", "base", third, "-o", "x.csv")
    assert all(run in (tmp_path / "x.csv").read_text() for run in (OLD, NEW, third))
    assert "'base' names 2 runs: `vmlab compare`, `report` and `export` take them" in refused(capsys, "show", "base")
    assert [run.tags for run in list_runs()] == [(), ("base",), ("base",)]
    assert said(capsys, "tag", third, "base")[1] == f"base is run {third}, and no longer {OLD}, {NEW}\n"


def test_attach_without_a_name_takes_the_run_under_way_and_else_the_newest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[str] = []

    def follow(folder: RunFolder, *_: object, **__: object) -> ExitCode:
        followed.append(folder.id)
        return ExitCode.PASSED

    monkeypatch.setattr("vmlab.cli.commands.run_commands.follow", follow)
    lock = os.open(runs_folder() / OLD / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for _ in range(2):
        with pytest.raises(SystemExit):
            command_line(["attach"])
        if len(followed) == 1:
            os.close(lock)
    assert followed == [OLD, NEW]


def test_a_run_is_named_when_it_starts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.cli.commands.run_commands.started", lambda *_, **__: RunFolder.of(OLD))
    assert said(capsys, "run", "tile", "--detach", "--tag", "night-5") == (f"{OLD}\n", f"night-5 is run {OLD}\n")
    assert tagged("night-5") == (OLD,)


def test_a_run_with_a_name_that_it_cannot_have_is_not_started(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("it was started")

    monkeypatch.setattr("vmlab.cli.commands.run_commands.started", start)
    for name, words in (("last", "is always the newest run"), ("tile", "is the name of a scenario"), ("2x", "id of")):
        assert words in refused(capsys, "run", "tile", "--detach", "--tag", name)


def test_a_run_has_several_names_and_a_name_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("v1.2", "baseline"):
        said(capsys, "tag", OLD, name)
    assert said(capsys, "tag", "last", "baseline")[1] == f"baseline is run {NEW}, and no longer {OLD}\n"
    assert said(capsys, "tag", "baseline", "baseline")[1] == f"baseline is run {NEW}\n"
    assert said(capsys, "tag", "v1.2", "good")[1] == f"good is run {OLD}\n"
    assert said(capsys, "tag")[0] == f"baseline  {NEW}\ngood      {OLD}\nv1.2      {OLD}\n"
    assert json.loads(said(capsys, "tag", "--json")[0]) == {
        "schema": "vmlab.tags/1",
        "tags": [
            {"name": "baseline", "run": NEW, "runs": [NEW], "here": True},
            {"name": "good", "run": OLD, "runs": [OLD], "here": True},
            {"name": "v1.2", "run": OLD, "runs": [OLD], "here": True},
        ],
    }


def test_the_list_of_runs_has_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert "NAME" not in said(capsys, "ls")[0]
    for name in ("v1.2", "baseline"):
        said(capsys, "tag", OLD, name)
    head, new, old = said(capsys, "ls")[0].splitlines()
    assert (head.split()[-1], new.split()[-1]) == ("NAME", "KiB")
    assert old.endswith("KiB   baseline, v1.2") and head.index("NAME") == old.index("baseline")
    runs = json.loads(said(capsys, "ls", "--json")[0])["runs"]
    assert [(run["id"], run["tags"]) for run in runs] == [(NEW, []), (OLD, ["baseline", "v1.2"])]


def test_the_list_of_runs_fits_a_terminal_whatever_they_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a" * 64, "b" * 64):
        said(capsys, "tag", OLD, name)
    lines = runs_text(list_runs(), WIDTH).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "aaaa…" in lines[2]


def test_a_name_is_removed_and_its_run_stays(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "tag", OLD, "baseline")
    assert said(capsys, "tag", "--rm", "baseline") == ("", "removed the name baseline\n")
    assert said(capsys, "tag") == ("", "no run has a name; `vmlab tag RUN NAME` gives one\n")
    assert "no run is called 'baseline'" in refused(capsys, "show", "baseline")
    assert "there is no name 'baseline'" in refused(capsys, "tag", "--rm", "baseline")
    assert (runs_folder() / OLD).is_dir()


def test_the_name_of_a_run_that_has_gone_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "tag", OLD, "baseline")
    remove_tree(runs_folder() / OLD)
    assert refused(capsys, "compare", "baseline", "last") == (
        f"vmlab: 'baseline' names run {OLD}, which is not here any more; `vmlab tag RUN baseline` names another, "
        "`vmlab tag --rm baseline` removes the name\n"
    )
    assert said(capsys, "tag")[0] == f"baseline  {OLD}  not here any more\n"
    assert json.loads(said(capsys, "tag", "--json")[0])["tags"] == [
        {"name": "baseline", "run": OLD, "runs": [OLD], "here": False}
    ]
    remove_tree(runs_folder() / NEW)
    assert "not here any more" in refused(capsys, "show", "baseline")
    _run(OLD)
    assert json.loads(said(capsys, "show", "baseline", "--json")[0])["run"]["id"] == OLD


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("20261121", "could be the id of a run; a name begins with a letter"),
        (OLD, "could be the id of a run; a name begins with a letter"),
        ("last", "is always the newest run"),
        ("latest", "is always the newest run"),
        ("tile", "is the name of a scenario"),
        ("skip", "is a word of `vmlab set`"),
        ("x" * 65, "a name has at most 64 characters; "),
        ("x" * 5000, "has 5000"),
        ("base\x1b[2Jline", "'base\\x1b[2Jline' is no name"),
        ("base\nline", "'base\\nline' is no name"),
        ("base\u202eline", "'base\\u202eline' is no name"),
        ("base line", "is no name: use letters"),
        ("base/line", "is no name"),
        ("a,b", "is no name"),
        ("a:2", "is no name"),
        ("größe", "is no name"),
        ("..", "is no name"),
        ("", "is no name"),
        ("-x", "No such option"),
        ("mine.sqlite", "could be a file"),
        ("mine.YAML", "could be a file"),
    ],
)
def test_a_name_that_could_be_something_else_is_one_line(
    capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    assert words in refused(capsys, "tag", OLD, name)
    assert not tags_folder().exists()


def test_the_id_of_a_run_that_is_here_is_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    """An imported run may have any id."""
    _run("night-7")
    for name in ("night-7", "night"):
        assert "could be the id of a run that is here" in refused(capsys, "tag", OLD, name)


def test_a_name_that_becomes_the_id_of_a_run_is_told_and_never_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "tag", OLD, "night")
    _run("night-7")
    assert resolve_run("night").parent.name == OLD
    _run("night")
    line = refused(capsys, "show", "night")
    assert (
        line == f"vmlab: 'night' is the id of one run and the name of {OLD}; `vmlab tag --rm night` removes the name\n"
    )
    said(capsys, "tag", "--rm", "night")
    assert resolve_run("night").parent.name == "night"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tag", OLD), "say `vmlab tag RUN NAME`"),
        (("tag", OLD, "x", "--json"), "say `vmlab tag RUN NAME`"),
        (("tag", OLD, "--rm", "x"), "--rm takes one name"),
        (("tag", "nothing", "x"), "no run is called 'nothing'"),
        (("tag", f"{OLD}:1", "x"), "is a cell; a name is of whole runs"),
        (("tag", f"{OLD},{OLD}", "x"), "a run is named twice"),
        (("tag", "copy", "x"), "no run is called"),
        (("tag", "./copy", "x"), "can have a name"),
        (("tag", "--rm", "../runs"), "there is no name"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/run.sqlite").write_bytes((runs_folder() / OLD / "run.sqlite").read_bytes())
    assert words in refused(capsys, *arguments)
    assert all_tags() == {}


def test_a_run_may_be_named_by_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "tag", str(runs_folder() / OLD), "baseline")[1] == f"baseline is run {OLD}\n"


@pytest.mark.parametrize("content", [b"", b"../../etc\n", b"..\n", b"x" * 5000, b"\x00"])
def test_a_damaged_name_leads_nowhere(capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    said(capsys, "tag", OLD, "good")
    (tags_folder() / "bad").write_bytes(content)
    (tags_folder() / ".bad.1234.new").touch()
    assert "'bad' names no run, as its file is damaged" in refused(capsys, "show", "bad")
    assert said(capsys, "tag")[0] == f"bad   its file is damaged\ngood  {OLD}\n"
    assert said(capsys, "ls")[0].count("good") == 1
    said(capsys, "tag", NEW, "bad")
    assert tagged("bad") == (NEW,)


TAG_ALL = """
import sys
from vmlab.store.runs import name_runs, resolve_run
run = [resolve_run(sys.argv[1])]
for number in range(30):
    name_runs(run, f"{sys.argv[2]}{number}")
    name_runs(run, "common")
"""


def test_processes_that_name_runs_at_the_same_time_lose_nothing() -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", TAG_ALL, run, letter]) for run, letter in ((OLD, "a"), (NEW, "b"))
    ]
    while any(process.poll() is None for process in started):
        assert tagged("common") in (None, (OLD,), (NEW,))
    assert [process.returncode for process in started] == [0, 0]
    tags = all_tags()
    assert tags.pop("common") in ((OLD,), (NEW,))
    assert tags == {f"{letter}{n}": (run,) for run, letter in ((OLD, "a"), (NEW, "b")) for n in range(30)}
    assert len(list(tags_folder().iterdir())) == 61
    assert sorted(path.name for path in state_folder().iterdir()) == ["runs", "tags"]


def test_a_name_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    tags_folder().touch()
    assert command_line(["tag", OLD, "baseline"]) == 3
    words = capsys.readouterr()
    assert words.out == "" and words.err.count("\n") == 1


def test_an_export_carries_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "tag", OLD, "baseline")
    said(capsys, "export", "baseline", "-o", "x.vmlab")
    remove_tree(runs_folder() / OLD)
    said(capsys, "tag", NEW, "baseline")
    assert said(capsys, "import", "x.vmlab")[0] == f"{OLD}\n"
    assert all_tags() == {"baseline": (NEW,)}
