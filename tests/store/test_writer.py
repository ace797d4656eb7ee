"""The writer: what returned is kept, whatever becomes of the process or of the disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.model.errors import StoreError
from vmlab.model.event import Notice
from vmlab.model.results import RawOutput
from vmlab.store.reader import RunReader
from vmlab.store.run_summary import summarise
from vmlab.store.sql_schema import APPLICATION_ID, TABLES, VERSION
from vmlab.store.writer import RunWriter

ROOT = Path(__file__).resolve().parents[2]


def test_events_come_back_as_they_went_in(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run.sqlite")
    said = [Notice(level="info", text=f"naïve line {number}") for number in range(5)]
    assert [writer.append(event) for event in said] == [1, 2, 3, 4, 5]
    with RunReader(writer.path) as reader:
        assert [event for _, event in reader.events()] == said
        assert [row for row, _ in reader.events(after=3)] == [4, 5]
    writer.close()


def test_raw_output_is_compressed_and_comes_back_whole(tmp_path: Path) -> None:
    text = "Requests per second: 268\n" * 2000 + "undecodable: \udcff ünï"
    writer = RunWriter(tmp_path / "run.sqlite")
    writer.raw(3, RawOutput("web", 2, "front", "ab", text))
    writer.raw(4, RawOutput("web", 1, "front", "ab", "other cell"))
    with RunReader(writer.path) as reader:
        assert reader.raw_outputs(3) == [(3, RawOutput("web", 2, "front", "ab", text))]
        assert [cell for cell, _ in reader.raw_outputs()] == [3, 4]
    writer.close()
    (size,) = sqlite3.connect(writer.path).execute("SELECT length(body) FROM raw_outputs").fetchone()
    assert size < len(text) / 20


def test_raw_output_that_no_reader_would_take_is_cut_off_or_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmlab.store.writer.MOST_PRINTED", 7)
    monkeypatch.setattr("vmlab.store.sql_schema.MOST_PRINTED", 7)
    with closing(RunWriter(tmp_path / "run.sqlite")) as writer:
        for text in ("\ufffd" * 3, "\ud800."):
            writer.raw(1, RawOutput("web", 1, "front", "ab", text))
    with RunReader(writer.path) as reader:
        assert [output.text for _, output in reader.raw_outputs()] == ["\ufffd\ufffd\udcef", "\\ud800."]


def test_a_layout_is_kept_once_and_documents_are_replaced(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run.sqlite")
    first = writer.sample_layout(["a", "b"], ["s", "1"])
    assert writer.sample_layout(["a", "b"], ["s", "1"]) == first
    assert writer.sample_layout(["a"], ["s"]) != first
    with pytest.raises(ValueError, match="2 names with 1 units"):
        writer.sample_layout(["a", "b"], ["s"])
    writer.document("plan", "old")
    writer.document("plan", "new")
    writer.close()
    with RunReader(writer.path) as reader:
        assert reader.documents() == {"plan": "new"}


def test_threads_share_one_writer(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run.sqlite")
    layout = writer.sample_layout(["a"], ["s"])

    def write(thread: int) -> None:
        for number in range(100):
            writer.append(Notice(level="info", text=f"{thread}:{number}"))
            writer.sample(layout, 0.0, float(number), b"\0\0\0\0")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with RunReader(writer.path) as reader:
        assert sum(1 for _ in reader.events()) == 400
        assert sum(1 for _ in reader.sample_rows()) == 400
    writer.close()


def test_a_reader_follows_a_writer_that_lives(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run.sqlite")
    done = threading.Event()

    def write() -> None:
        for number in range(3000):
            writer.append(Notice(level="info", text=str(number)))
            if number % 1000 == 0:
                writer.checkpoint()
        done.set()

    thread = threading.Thread(target=write)
    seen: list[str] = []
    with RunReader(writer.path) as reader:
        thread.start()
        last = 0
        while True:
            over = done.is_set()
            for row, event in reader.events(after=last):
                assert isinstance(event, Notice)
                seen.append(event.text)
                last = row
            if over:
                break
            done.wait(0.01)
    thread.join()
    writer.close()
    assert seen == [str(number) for number in range(3000)]


def test_a_second_writer_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    path = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}).close()
    writer = RunWriter(path)
    row = writer.append(Notice(level="info", text="the launcher's last word"))
    writer.close()
    with RunReader(path) as reader:
        assert [number for number, _ in reader.events()][-1] == row == 3


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run.sqlite")
    writer.close()
    writer.close()
    with pytest.raises(StoreError, match="it is closed"):
        writer.append(Notice(level="info", text="late"))


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write .*/gone/run\.sqlite: unable to open"):
        RunWriter(tmp_path / "gone" / "run.sqlite")


_MORTAL = """
import sys
from pathlib import Path
from tests.store.stories import Story
story = Story(Path(sys.argv[1])).begin({"cache": ["none", "writeback"]})
story.cell({"cache": "none"}, {"web": 2.5}, wall=3.0)
story.start_cell({"cache": "writeback"})
layout = story.writer.sample_layout(["tick_length_seconds", "tick_lateness_seconds"], ["s", "s"])
number = 0
while True:
    number += 1
    story.note(f"said {number}")
    story.writer.sample(layout, 0.0, float(number), bytes(8))
    print(number, flush=True)
"""


def test_kill_nine_loses_nothing_that_returned(tmp_path: Path) -> None:
    path = tmp_path / "20261121-143000-tile-7f3a" / "run.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", _MORTAL, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 500:
                break
        process.send_signal(signal.SIGKILL)
        confirmed = [int(line), *(int(rest) for rest in process.stdout if rest.endswith("\n"))][-1]
    assert process.returncode == -signal.SIGKILL
    with RunReader(path) as reader:
        notices = [event.text for _, event in reader.events(kinds=(Notice,)) if isinstance(event, Notice)]
        samples = sum(1 for _ in reader.sample_rows())
    assert len(notices) >= confirmed >= 500
    assert notices == [f"said {number}" for number in range(1, len(notices) + 1)]
    assert samples >= confirmed
    summary = summarise(path)
    assert (summary.outcome, summary.cells_done, summary.cells_planned) == ("aborted", 1, 2)


_GLUTTON = """
import resource, sys
from pathlib import Path
from vmlab.model.errors import StoreError
from vmlab.model.event import Notice
from vmlab.store.sql_schema import APPLICATION_ID, TABLES, VERSION
from vmlab.store.writer import RunWriter
path, limit = Path(sys.argv[1]), int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
writer = RunWriter(path)
for number in range(1, 100000):
    try:
        writer.append(Notice(level="info", text=f"{number} " + "x" * 1000))
    except StoreError as error:
        print(number - 1)
        print(error)
        break
sys.stdout.flush()
import shutil
with Path(sys.argv[3]).open("wb") as kept, path.open("rb") as file:
    shutil.copyfileobj(file, kept)
with Path(sys.argv[3] + "-wal").open("wb") as kept, Path(f"{path}-wal").open("rb") as file:
    shutil.copyfileobj(file, kept)
"""


def _fill(command: list[str], tmp_path: Path, limit: int, folder: Path) -> tuple[int, str]:
    kept = tmp_path / "kept.sqlite"
    argv = [*command, sys.executable, "-c", _GLUTTON, str(folder / "run.sqlite"), str(limit), str(kept)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment, timeout=240).stdout
    written, message = said.splitlines()
    return int(written), message


@pytest.mark.parametrize("how", ["tmpfs", "limit"])
def test_a_full_disk_is_one_line_and_what_was_written_stays(how: str, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    if how == "limit":
        written, message = _fill([], tmp_path, 600_000, full)
    elif os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    else:
        # In a mount namespace of its own, so that nothing stays mounted whatever happens.
        mount = f'mount -t tmpfs -o size=600k none "{full}" && exec "$@"'
        written, message = _fill(["unshare", "--mount", "sh", "-c", mount, "sh"], tmp_path, 0, full)
        assert "full" in message
    assert message.startswith(f"cannot write {full}/run.sqlite: ")
    with RunReader(tmp_path / "kept.sqlite") as reader:
        assert [row for row, _ in reader.events()] == list(range(1, written + 1))
    assert written > 20


@pytest.mark.parametrize(("page", "most"), [(None, 4.5), (4096, 5.5)])
def test_an_hour_of_twelve_guests_takes_four_bytes_a_value_and_little_more(
    tmp_path: Path, page: int | None, most: float
) -> None:
    """A row for each tick, of which as many as fit stand in a page. A store of an earlier version goes on as it is."""
    path, values, ticks = tmp_path / "run.sqlite", 394, 3600
    if page is not None:
        with closing(sqlite3.connect(path)) as earlier:
            earlier.execute(f"PRAGMA page_size = {page}")
            earlier.executescript(
                f"{TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
            )
    writer = RunWriter(path)
    layout = writer.sample_layout([f"value_ms[{number}]" for number in range(values)], ["ms"] * values)
    rows = [(float(tick), bytes([tick % 251]) * 4 * values) for tick in range(ticks)]
    for mono, body in rows:
        writer.sample(layout, mono, mono, body)
    writer.close()
    assert 4.0 < path.stat().st_size / values / ticks <= most
    with RunReader(path) as reader:
        assert [(row.mono, row.body) for row in reader.sample_rows()] == rows
