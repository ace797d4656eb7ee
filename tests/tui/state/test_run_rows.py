"""Rows of the Runs screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vmlab.store.life import write_note
from vmlab.store.run_list import RunList
from vmlab.store.runs import write_tag
from vmlab.tui.feed.run_facts import rows_of


def test_tags_are_shown_and_found(recorded: Path) -> None:
    listed = RunList()
    assert [row.what for row in rows_of(listed.read())] == ["tile"]
    write_tag("baseline", recorded.name)
    runs = listed.read()
    other = replace(runs[0], id="20261121-070000-tile-0bad", tags=())
    assert [row.what for row in rows_of([*runs, other], sort=1)] == ["baseline: tile", "tile"]
    assert [row.run.id for row in rows_of([*runs, other], wanted="BASE tile")] == [recorded.name]
    assert rows_of([other], wanted="baseline") == []


def test_a_note_is_shown_and_found_in_any_script(recorded: Path) -> None:
    write_note(recorded, "après la mise à jour\n性能")
    (run,) = RunList().read()
    (row,) = rows_of([run])
    assert (row.what, row.said) == ("tile", "tile: après la mise à jour\\n性能")
    for wanted in ("APRE\u0300S", "性能 tile", "\u00e0 jour"):
        assert rows_of([run], wanted=wanted) == [row]
    assert rows_of([run], wanted="before") == []
