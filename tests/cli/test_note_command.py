"""`vmlab note`: what a run was, in a user's own words, wherever the run is shown."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

import vmlab
from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.places import runs_folder
from vmlab.report.listing import runs_text
from vmlab.store.life import NOTE, note_of, write_note
from vmlab.store.run_list import list_runs
from vmlab.system.removal import remove_tree
from vmlab.system.text_width import UNCUT, width_of

OLD, NEW = "20261121-143000-tile-aaaa", "20261121-150000-tile-bbbb"
SCRIPTS = "nach BIOS-Update – 性能, مرحبا 🚀"  # noqa: RUF001 - a dash that users type
HOSTILE = 'a \x1b[31m\nb \u202e <script>alert(1)</script> "x\\ [y](z) | c\x00\t'
SHOWN = 'a \\x1b[31m\\nb \\u202e <script>alert(1)</script> "x\\ [y](z) | c\\x00'


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for run in (OLD, NEW):
        story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": ["none"]})
        story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
        story.end()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert command_line(list(arguments)) == 0
    words = capsys.readouterr()
    return words.out, words.err


def test_a_note_is_set_replaced_printed_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "note", OLD) == ("", f"run {OLD} has no note\n")
    assert said(capsys, "note", OLD, f"  {SCRIPTS}\n") == ("", f'run {OLD} has the note "{SCRIPTS}"\n')
    assert said(capsys, "note", OLD) == (f"{SCRIPTS}\n", "")
    assert said(capsys, "note", OLD, "x") == ("", f'run {OLD} has the note "x", and no longer "{SCRIPTS}"\n')
    for removal in ("", "--rm"):
        write_note(runs_folder() / OLD, "x")
        assert said(capsys, "note", OLD, removal) == ("", f'run {OLD} has no note, and no longer "x"\n')
        assert note_of(runs_folder() / OLD) == ""


@pytest.mark.parametrize(("text", "shown"), [(SCRIPTS, SCRIPTS), (HOSTILE, SHOWN)])
def test_every_medium_has_the_note_and_the_tags(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, shown: str
) -> None:
    vmlab.note_run(NEW, text)
    vmlab.tag_run(NEW, "base")
    note = vmlab.open_run(NEW).note
    assert note == text.strip()
    assert said(capsys, "note", "base") == (f"{shown}\n", "")
    assert said(capsys, "ls")[0].splitlines()[1].endswith(f"base  {shown}")
    assert [run.get("note") for run in json.loads(said(capsys, "ls", "--json")[0])["runs"]] == [note, None]
    lines = said(capsys, "show", "base")[0].splitlines()
    assert lines[2:4] == [f"note: {shown}", "tags: base"]
    told = json.loads(said(capsys, "show", "base", "--json")[0])["run"]
    assert (told["note"], told["tags"]) == (note, ["base"])
    assert not {"note", "tags"} & json.loads(said(capsys, "show", OLD, "--json")[0])["run"].keys()
    for name in ("x.csv", "x.jsonl", "x.prom", "x.bench", "x.xml"):
        said(capsys, "export", OLD, NEW, "-o", name)
    with Path("x.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["run"], row["tags"], row["note"]) for row in rows} == {(OLD, "", ""), (NEW, "base", shown)}
    samples = [json.loads(line)["metadata"] for line in Path("x.jsonl").read_text().splitlines()]
    assert {one.get("note") for one in samples} == {None, shown}
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    metrics = Path("x.prom").read_text(encoding="utf-8").splitlines()
    assert [line for line in metrics if "note=" in line] == [line for line in metrics if f'note="{escaped}"' in line]
    assert sum("note=" in line for line in metrics) == 1, "a note makes no new series of figures"
    assert {f"# note: {shown}", "# tags: base"} <= set(Path("x.bench").read_text(encoding="utf-8").splitlines())
    properties = etree.parse(tmp_path / "x.xml").iterfind(".//property[@name='note']")
    assert [one.get("value") for one in properties] == [shown]
    said(capsys, "report", NEW, "-o", "x.html")
    page = etree.parse(tmp_path / "x.html", etree.HTMLParser(encoding="utf-8"))
    assert f"note: {shown}" in "".join(map(str, page.getroot().itertext())) and not page.findall(".//script")


def test_an_exported_run_takes_its_note_along(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "note", OLD, HOSTILE)
    said(capsys, "export", OLD, "-o", "x.vmlab")
    remove_tree(runs_folder() / OLD)
    assert said(capsys, "import", "x.vmlab")[0] == f"{OLD}\n"
    assert note_of(runs_folder() / OLD) == HOSTILE.strip()


def test_a_list_on_a_terminal_has_the_note_below_its_run() -> None:
    write_note(runs_folder() / OLD, "性能 " * 100)
    heading, new, old, note = runs_text(list_runs(), 80).splitlines()
    assert heading.startswith("RUN") and new.startswith(NEW) and old.startswith(OLD)
    assert note.startswith("  性能 性能") and width_of(note) <= 80
    assert len(runs_text(list_runs(), UNCUT).splitlines()) == 3, "programs have a line a run"


def test_a_run_is_noted_when_it_starts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[str]()

    def start(*_: object, **__: object) -> RunFolder:
        started.append(OLD)
        return RunFolder.of(OLD)

    monkeypatch.setattr("vmlab.cli.commands.run_commands.started", start)
    words = said(capsys, "run", "tile", "--detach", "--tag", "night", "--note", SCRIPTS)
    assert words == (f"{OLD}\n", f'night is run {OLD}\nrun {OLD} has the note "{SCRIPTS}"\n')
    assert command_line(["run", "tile", "--detach", "--note", "x" * 501]) == 2
    assert (note_of(runs_folder() / OLD), len(started)) == (SCRIPTS, 1)
    (runs_folder() / OLD / NOTE).unlink()
    (runs_folder() / OLD / NOTE).mkdir()
    out, err = said(capsys, "run", "tile", "--detach", "--note", "x")
    assert out == f"{OLD}\n" and err.splitlines()[-1].startswith(f"run {OLD} goes on without its note: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((OLD, "性" * 501), "a note has at most 500 characters; this one has 501"),
        ((OLD, "\udcff"), "a note is text in UTF-8"),
        ((OLD, "x", "--rm"), "--rm removes the note"),
        ((f"{OLD}:1", "x"), "no run is called"),
        (("nothing", "x"), "no run is called"),
        (("./copy", "x"), "can have a note"),
    ],
)
def test_what_cannot_be_noted_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/run.sqlite").write_bytes((runs_folder() / OLD / "run.sqlite").read_bytes())
    assert command_line(["note", *arguments]) == 2
    told = capsys.readouterr()
    assert words in told.err and told.err.count("\n") == 1 and told.out == ""
    assert not list(tmp_path.rglob(NOTE))


@pytest.mark.parametrize("content", [b"x" * 501, b"x" * 2**20, b"\xff\xfe", None])
def test_a_file_that_is_no_note_is_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None
) -> None:
    place = runs_folder() / OLD / NOTE
    if content is None:
        (tmp_path / "secret").write_text("secret")
        place.symlink_to(tmp_path / "secret")
        assert command_line(["note", OLD, "x"]) == 2 and (tmp_path / "secret").read_text() == "secret"
        capsys.readouterr()
    else:
        place.write_bytes(content)
    assert [run.note for run in list_runs()] == ["", ""]
    assert "note: " not in said(capsys, "show", OLD)[0]
    assert said(capsys, "note", OLD)[1] == f"run {OLD} has no note\n"


WRITE = """
import sys
from pathlib import Path
from vmlab.store.life import write_note
for _ in range(50):
    write_note(Path(sys.argv[1]), sys.argv[2] * 500)
"""


def test_of_two_writers_one_note_stays_whole() -> None:
    folder = runs_folder() / OLD
    before = {path.name for path in folder.iterdir()}
    started = [subprocess.Popen([sys.executable, "-c", WRITE, str(folder), letter]) for letter in "性x"]
    while any(process.poll() is None for process in started):
        assert note_of(folder) in ("", "性" * 500, "x" * 500)
    assert [process.returncode for process in started] == [0, 0]
    assert note_of(folder) in ("性" * 500, "x" * 500)
    assert {path.name for path in folder.iterdir()} == {*before, NOTE}
