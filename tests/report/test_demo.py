"""The recording that comes with the program, and what its chapters say: nothing but what the record proves."""

from __future__ import annotations

import hashlib
import math
import re
import shutil
import sqlite3
import tomllib
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.document import run_document
from vmlab.model.cell_event import (
    CacheProved,
    CacheSwitched,
    CellEnded,
    CellStarted,
)
from vmlab.model.errors import StoreError, UsageError, VmlabError
from vmlab.model.event import (
    HostProbed,
    RunEnded,
    RunStarted,
)
from vmlab.report.demo.chapters import chapters_text, load_demo
from vmlab.report.demo.duration import BOOK, FOLDER
from vmlab.report.run.tiles_board import board_of, cells_of_most_tiles, target_bars
from vmlab.report.words import number
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
    # One cell was switched, which invalidates it and so the run; nothing failed.
    switched = {event.cell for event in events if isinstance(event, CacheSwitched)}
    outcomes = {event.cell: event.outcome for event in events if isinstance(event, CellEnded)}
    assert switched == {cell for cell, outcome in outcomes.items() if outcome != "passed"} == {3}


def test_it_names_no_folder_of_the_machine_that_made_it() -> None:
    with closing(sqlite3.connect(f"file:{FOLDER / STORE}?mode=ro&immutable=1", uri=True)) as connection:
        bodies = [
            body for table in ("events", "documents") for (body,) in connection.execute(f"SELECT body FROM {table}")
        ]
    folders = {place for body in bodies for place in re.findall(r'"(/[^"]*?)/(?:runs|scenarios)/', body)}
    assert folders == {"/root/.local/state/vmlab", "/root/vmlab"}


def test_no_figure_is_typed_in() -> None:
    book = tomllib.loads((FOLDER / BOOK).read_text())
    assert len(book["chapters"]) == len(load_demo().chapters) > 0
    stage = {"title": book["stage"]["question"], "sentence": book["stage"]["about"]}
    for entry in [*book["chapters"], book["ending"], stage]:
        assert not re.search(r"\d", re.sub(r"{[^}]*}", "", entry["sentence"])), entry["sentence"]
        assert not re.search(r"\d", entry["title"])


def test_the_figures_in_its_sentences_are_those_of_the_record(events: list[object]) -> None:
    demo = load_demo()
    told = chapters_text(demo, 10_000)
    (probed,) = [event for event in events if isinstance(event, HostProbed)]
    (switched,) = [event for event in events if isinstance(event, CacheSwitched)]
    started = [event for event in events if isinstance(event, CellStarted)]
    assert [cell.axes for cell in started] == [
        {"cache": cache, "tiles": tiles} for cache in ("none", "writeback") for tiles in (1, 2, 3)
    ]
    proved = [event for event in events if isinstance(event, CacheProved) and event.mono > switched.mono]
    in_that_cell = [proof for proof in proved if proof.cell == switched.cell]
    assert in_that_cell
    assert not any(event.proof.o_direct for event in in_that_cell)
    longest = max(switched.pauses_ms.values())
    for words in (
        f"A tile is {started[0].guests} machines",
        f"recorded on {probed_date(events)} on {demo.facts.host}",
        f"Recorded on {demo.facts.host}; machines and disk emulated",
        f"no machine stood still for more than {math.ceil(longest)} ms",
        f"mode of {started[2].guests} machines is changed while they work",
        demo.facts.carried,
    ):
        assert words in f"{told} {demo.about}", told
    assert probed.accelerator == "tcg" and probed.host["cpu"] in told


def test_the_knee_in_its_last_chapter_is_that_of_its_targets() -> None:
    with RunReader(FOLDER / STORE) as reader:
        cells = run_document(reader).cells
    carried = {
        mode: max((tiles for tiles in (1, 2, 3) if delivers(cells, mode, tiles)), default=0)
        for mode in ("none", "writeback")
    }
    told = load_demo().facts.carried
    for mode, tiles in carried.items():
        assert f"{tiles} tile{'s' * (tiles > 1)} with cache {mode}" in told
    did = {number: fact.did.partition(" ")[0] for number, fact in load_demo().facts.cells.items()}
    for cell in cells:
        if cell.outcome == "passed":
            assert did[cell.cell] == ("kept" if all(target.met for target in cell.targets) else "missed")


def delivers(cells: list[CellDocument], mode: str, tiles: int) -> bool:
    """Whether all targets were met, of a cell that counts."""
    (cell,) = [one for one in cells if one.axes == {"cache": mode, "tiles": tiles}]
    return cell.outcome == "passed" and all(target.met for target in cell.targets)


def probed_date(events: list[object]) -> str:
    began = next(event.wall for event in events if isinstance(event, RunStarted))
    return datetime.fromtimestamp(began, UTC).date().isoformat()


def test_chapters_follow_each_other_and_lie_within_the_recording(events: list[object]) -> None:
    demo = load_demo()
    starts = [chapter.position for chapter in demo.chapters]
    assert starts == sorted(set(starts)) and starts[0] >= 0
    assert starts[-1] < demo.ending.position
    assert [demo.place(start) for start in starts] == list(range(len(starts)))
    assert demo.place(0) == 0 and demo.place(1e9) == len(starts) - 1
    # The whole story takes two minutes, and each chapter can be read.
    assert 90 < demo.seconds < 125
    position, passed = starts[0], 0.0
    seen = dict.fromkeys(range(len(starts)), 0.0)
    while position < demo.ending.position:
        if (place := demo.stretch(position).place) is not None:
            seen[place] += 0.05
        position, passed = demo.onward(position, 0.05), passed + 0.05
    assert passed == pytest.approx(demo.seconds, abs=0.2)
    assert min(seen.values()) > 6


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
    (folder / BOOK).write_text(text.replace("cell = 4", "cell = 9"))


def unknown_figure(folder: Path) -> None:
    text = (folder / BOOK).read_text()
    (folder / BOOK).write_text(text.replace("{cell.cache}", "{cell.colour}"))


def without_the_switch(folder: Path) -> None:
    with closing(sqlite3.connect(folder / STORE)) as connection:
        connection.execute("DELETE FROM events WHERE kind = 'CacheSwitched'")
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
        without_the_switch,
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


def test_the_board_grows_as_cells_end() -> None:
    with RunReader(FOLDER / STORE) as reader:
        document = run_document(reader)
    boards = [board_of(document, range(1, ended + 1)) for ended in range(7)]
    shown = [[(row.label, row.squares, row.carried) for row in board.rows] for board in boards if board is not None]
    none, writeback = ("cache none", (True, False, False), "1"), "cache writeback"
    assert shown == [
        [],
        [("cache none", (True, None, None), "1")],
        [none],
        [none],
        [none, (writeback, (True, None, None), "1")],
        [none, (writeback, (True, True, None), "2")],
        [none, (writeback, (True, True, False), "2")],
    ]
    whole = board_of(document)
    assert whole == boards[-1] and whole is not None
    cells = {cell.cell: cell for cell in document.cells}
    for row, ended_by, resource in zip(whole.rows, (2, 6), ("disk", "cpu"), strict=True):
        bound = cells[ended_by].bound_by
        assert bound is not None
        assert row.stopped == f"stopped by the {resource.upper()}"
        assert row.share == f"{bound.evidence[f'{resource}_busy_percent']:.0f} %"
    assert {"tcg", "emulated disk", "one measurement each"} < {*whole.notes}
    assert "cell 3 was switched and does not count" in whole.notes
    assert cells_of_most_tiles(document) == (2, 5)


def test_bars_of_targets_have_the_worst_tile_of_each_workload() -> None:
    with RunReader(FOLDER / STORE) as reader:
        cell = run_document(reader).cells[1]
    bars = {bar.name: bar for bar in target_bars(cell)}
    assert list(bars) == ["web p95", "database p95", "mail p95"]
    worst = max(one.value or 0 for one in cell.targets if (one.workload, one.unit) == ("mail", "s"))
    assert (bars["mail p95"].value, bars["mail p95"].limit) == (f"{number(worst)} s", "10 s")
    for name, bar in bars.items():
        named = [one for one in cell.targets if f"{one.workload} p95" == name and one.metric == "latency_p95"]
        assert named and bar.met == all(one.met for one in named)
    assert not bars["database p95"].met


def test_no_board_where_tiles_do_not_grow() -> None:
    with RunReader(FOLDER / STORE) as reader:
        document = run_document(reader)
    assert board_of(replace(document, cells=[replace(cell, targets=[]) for cell in document.cells])) is None
