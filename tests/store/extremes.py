"""``python -m tests.store.extremes``: numbers of all events and stored documents at their extremes, read by readers.

Run with a limit of its memory. With ``each`` every number by itself, else all of an event at once. Prints a line for
what broke a reader, and how many trials there were.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.checklist import say
from tests.compatibility.events import example
from vmlab.analysis.document import run_document
from vmlab.analysis.record.phases import run_time
from vmlab.model.cell_event import CellEnded
from vmlab.model.checked import made
from vmlab.model.errors import StoreError
from vmlab.model.event import Event
from vmlab.model.event_json import from_json, to_json
from vmlab.model.jsonable import jsonable
from vmlab.report.run.cell_text import cell_text
from vmlab.report.run.phase_text import phases_text
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader
from vmlab.tui.state.run_state import RunState

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "vmlab/report/demo/run.sqlite"
NUMBERS = (2**63 - 1, 1e100, -1e100, nan)
MORE = (*NUMBERS, 10**6, -(2**63) + 1, 2**53, 5e-324, 0, -1, inf, True, "7", 2.5)
_WIDTH = 78


def base(folder: Path) -> Path:
    """A store of the demo's first two cells, without samples."""
    path = folder / "base.sqlite"
    path.write_bytes(DEMO.read_bytes())
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("DELETE FROM samples")
        opened.execute("DELETE FROM raw_outputs")
        few = (
            "SELECT min(id) FROM events WHERE kind IN ('DiskLatencyRead', 'StepEnded', 'GuestInspected') GROUP BY kind"
        )
        many = (
            "'WorkloadProgressed', 'DiskLatencyRead', 'StepEnded', 'GuestInspected', 'GuestStateChanged', 'CacheProved'"
        )
        opened.execute(f"DELETE FROM events WHERE cell > 2 OR kind IN ({many}) AND id NOT IN ({few})")
        opened.commit()
        opened.execute("VACUUM")
    return path


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers of a JSON value are."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*at, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at


def with_number(value: Any, at: tuple[Any, ...], number: object) -> Any:
    """The value with another number in that place."""
    changed = json.loads(json.dumps(value))
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = number
    return changed


def read_all(path: Path, *, events: bool) -> None:
    """As `show`, its text, and the console read a run; with `events` also by what reads nothing but those."""
    with RunReader(path) as reader:
        document = run_document(reader)
        json.dumps(jsonable(document))
        run_table(document, _WIDTH)
        for cell in document.cells:
            cell_text(document, cell, _WIDTH)
        if not events:
            return
        phases_text(run_time(reader), _WIDTH)
        state = RunState({}, None)
        for _, event in reader.events():
            state.apply(event)
        state.snapshot()


def bodies(store: sqlite3.Connection) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Each kind of event as it is recorded, with the row in which it stands; of others an example without a row."""
    seen = set()
    for row, body in store.execute("SELECT id, body FROM events ORDER BY id").fetchall():
        known = json.loads(body)
        if known["kind"] not in seen:
            seen.add(known["kind"])
            yield row, known
    for kind, cls in sorted(Event.registry.items()):
        if kind not in seen:
            yield None, json.loads(to_json(made(cls, example(cls))))


def taken(body: dict[str, Any]) -> str | None:
    """The event that it is read as; None where it is not."""
    try:
        event = from_json(json.dumps(body))
    except ValueError:
        return None
    return None if event is None else to_json(event)


def changes(body: dict[str, Any], *, each: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """The event with other numbers, as far as it is still read, and what was changed."""
    where = list(places(body))
    if each:
        # Of several that are read as the same event, such as those without a figure, the first stands for all.
        known = {None, taken(body)}
        for at, number in product(where, MORE):
            changed = with_number(body, at, number)
            if (event := taken(changed)) not in known:
                known.add(event)
                yield f"{at}: {number}", changed
        return
    for number in NUMBERS:
        whole = body
        for at in where:
            one = with_number(whole, at, number)
            whole = whole if taken(one) is None else one
        yield str(number), whole


def trials(store: sqlite3.Connection, *, each: bool) -> Iterator[tuple[str, bool]]:
    """Put one number after the other into the store; what was done, for each, and whether to an event."""
    (last,) = store.execute("SELECT max(id) FROM events WHERE kind = ?", (CellEnded.__name__,)).fetchone()
    for row, body in bodies(store):
        for words, other in changes(body, each=each):
            text = json.dumps(other)
            if row is None:
                store.execute("UPDATE events SET id = -id WHERE id >= ?", (last,))
                store.execute("UPDATE events SET id = 1 - id WHERE id < 0")
                values = (last, body["kind"], text)
                store.execute("INSERT INTO events (id, wall, mono, kind, body) VALUES (?, 1, 1, ?, ?)", values)
            else:
                store.execute("UPDATE events SET body = ? WHERE id = ?", (text, row))
            yield f"{body['kind']} {words}", True
    (text,) = store.execute("SELECT body FROM documents WHERE name = 'scenario'").fetchone()
    scenario = json.loads(text) | {"until": {"spread": 5.0, "looks": [2, 3], "at_least": 2, "at_most": 3}}
    scenario["table"] |= {"best_of": 2}
    scenario["axes"]["tiles"]["values"] = [1, 2]
    for at in places(scenario):
        for number in MORE if each else NUMBERS[:2]:
            changed = json.dumps(with_number(scenario, at, number))
            store.execute("UPDATE documents SET body = ? WHERE name = 'scenario'", (changed,))
            yield f"scenario {at}: {number}", False


def main(*, each: bool) -> int:
    """Try all of them; 1 where anything but a StoreError came of one."""
    broke = count = 0
    # All events but one are those of the trial before, and no reader changes one.
    kept = lru_cache(2000)(from_json)
    with patch("vmlab.store.reader.from_json", kept), tempfile.TemporaryDirectory() as folder:
        path = base(Path(folder))
        with closing(sqlite3.connect(path, isolation_level=None)) as store:
            store.execute("PRAGMA synchronous = OFF")
            store.execute("PRAGMA journal_mode = MEMORY")
            whole = path.read_bytes()
            for words, events in _restored(trials(store, each=each), path, whole):
                count += 1
                try:
                    read_all(path, events=events)
                except StoreError as error:
                    broke += "\n" in str(error)
                except Exception as error:  # noqa: BLE001
                    broke += 1
                    say(f"{words}: {error!r}")
    say(f"{count} trials, {broke} broke a reader")
    return int(broke > 0)


def _restored(trials: Iterator[tuple[str, bool]], path: Path, whole: bytes) -> Iterator[tuple[str, bool]]:
    for trial in trials:
        yield trial
        path.write_bytes(whole)


if __name__ == "__main__":
    sys.exit(main(each=sys.argv[1:] == ["each"]))
