"""The recording that comes with the program, and what its chapters say: nothing but what the record proves."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from vmlab.model.errors import StoreError, UsageError, VmlabError
from vmlab.model.event import CellEnded, CellStarted, HostProbed, RunEnded, RunStarted
from vmlab.report.demo.chapters import BOOK, FOLDER, chapters_text, load_demo
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE

MOST_BYTES = 4 * 2**20


@pytest.fixture(scope="module")
def events() -> list[object]:
    with RunReader(FOLDER / STORE) as reader:
        return [event for _, event in reader.events()]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the demo, to be damaged."""
    shutil.copytree(FOLDER, tmp_path / "demo", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return tmp_path / "demo"


def test_the_recording_is_a_whole_run_that_is_small_enough_to_ship(events: list[object]) -> None:
    assert (FOLDER / STORE).stat().st_size < MOST_BYTES
    assert isinstance(events[0], RunStarted) and isinstance(events[-1], RunEnded)
    assert {event.outcome for event in events if isinstance(event, CellEnded)} == {"passed"}


def test_no_figure_is_typed_in() -> None:
    book = tomllib.loads((FOLDER / BOOK).read_text())
    for entry in [*book["chapters"], book["ending"]]:
        assert not re.search(r"\d", re.sub(r"{[^}]*}", "", entry["sentence"])), entry["sentence"]
        assert not re.search(r"\d", entry["title"])


def test_the_figures_in_its_sentences_are_those_of_the_record(events: list[object]) -> None:
    told = chapters_text(load_demo(), 10_000)
    (probed,) = [event for event in events if isinstance(event, HostProbed)]
    started = [event for event in events if isinstance(event, CellStarted)]
    ended = [event for event in events if isinstance(event, CellEnded)]
    assert [cell.axes for cell in started] == [{"tiles": 1, "cache": cache} for cache in ("none", "writeback")]
    uncached, cached = (in_minutes(cell.wall_seconds or 0.0) for cell in ended)
    for words in (
        f"{started[0].guests} guests are restored",
        f"on {probed.host['cpus']} CPUs",
        f"with cache writeback takes {cached}; with cache none it took {uncached}",
        "emulated (TCG)",
    ):
        assert words in told, told
    assert probed.accelerator == "tcg" and probed.host["cpu"] in told


def in_minutes(seconds: float) -> str:
    return f"{round(seconds) // 60} min {round(seconds) % 60:02d} s"


def test_chapters_follow_each_other_and_lie_within_the_recording(events: list[object]) -> None:
    demo = load_demo()
    starts = [chapter.position for chapter in demo.chapters]
    assert starts == sorted(set(starts)) and starts[0] >= 0
    assert starts[-1] < demo.ending.position
    assert [demo.place(start) for start in starts] == list(range(len(starts)))
    assert demo.place(0) == 0 and demo.place(1e9) == len(starts) - 1
    # The whole story takes a few minutes.
    assert (demo.ending.position - starts[0]) / demo.speed < 300


def test_reading_it_changes_nothing_and_makes_no_file(copied: Path) -> None:
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in copied.iterdir()}
    load_demo(copied)
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in copied.iterdir()} == before


def damaged_header(folder: Path) -> None:
    (folder / STORE).write_bytes(b"no database" * 100)


def cut_off(folder: Path) -> None:
    whole = (folder / STORE).read_bytes()
    (folder / STORE).write_bytes(whole[: len(whole) // 3])


def gone(folder: Path) -> None:
    (folder / STORE).unlink()


def no_chapters(folder: Path) -> None:
    (folder / BOOK).unlink()


def torn_chapters(folder: Path) -> None:
    (folder / BOOK).write_text("speed = ")


def another_cell(folder: Path) -> None:
    text = (folder / BOOK).read_text()
    (folder / BOOK).write_text(text.replace("cell = 2", "cell = 9"))


def unknown_figure(folder: Path) -> None:
    text = (folder / BOOK).read_text()
    (folder / BOOK).write_text(text.replace("{cell.cpu}", "{cell.colour}"))


def without_an_end(folder: Path) -> None:
    with closing(sqlite3.connect(folder / STORE)) as connection:
        connection.execute("DELETE FROM events WHERE kind = 'PhaseStarted' AND cell = 2")
        connection.commit()


def text_that_is_none(folder: Path) -> None:
    with closing(sqlite3.connect(folder / STORE)) as connection:
        connection.execute("UPDATE events SET body = CAST(x'7b22ff' AS TEXT) WHERE id > 5")
        connection.commit()


def without_cells(folder: Path) -> None:
    with closing(sqlite3.connect(folder / STORE)) as connection:
        connection.execute("DELETE FROM events WHERE kind = 'CellStarted'")
        connection.commit()


@pytest.mark.parametrize(
    "damage",
    [
        damaged_header,
        cut_off,
        gone,
        no_chapters,
        torn_chapters,
        another_cell,
        unknown_figure,
        without_an_end,
        text_that_is_none,
        without_cells,
    ],
    ids=lambda damage: damage.__name__,
)
def test_what_is_damaged_is_one_line_that_names_the_file(damage: object, copied: Path) -> None:
    assert callable(damage)
    damage(copied)
    with pytest.raises(VmlabError) as raised:
        load_demo(copied)
    assert isinstance(raised.value, StoreError | UsageError)
    assert "\n" not in str(raised.value) and str(copied) in str(raised.value)
