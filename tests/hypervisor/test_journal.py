"""What a run's journal says is left of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from vmlab.hypervisor.journal import Journal, JournalEntry


def line(verb: str, what: str) -> str:
    return json.dumps({verb: asdict(JournalEntry("file", what))}) + "\n"


def test_what_was_made_twice_and_removed_once_is_still_there_and_the_newest_comes_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    lines = [("made", "/a"), ("made", "/b"), ("made", "/a"), ("gone", "/a"), ("gone", "/c"), ("made", "/c")]
    journal.path.write_text("".join(line(*one) for one in lines) + "{}\n")
    assert [one.what for one in journal.open_entries()] == ["/c", "/a", "/b"]
    journal.path.write_text("".join(line("made", what) for what in ("/a", "/a", "/b")) + line("gone", "/a"))
    assert [one.what for one in journal.open_entries()] == ["/b", "/a"]


def test_a_journal_of_strangers_lines_is_read_once(tmp_path: Path) -> None:
    """Each line was compared with all that were open: a journal of 16 MiB took hours."""
    journal = Journal(tmp_path / "journal.jsonl")
    made, gone = (range(start, start + 40_000) for start in (0, 1_000_000))
    text = "".join(line("made", f"/{number}") for number in made)
    journal.path.write_text(text + "".join(line("gone", f"/{number}") for number in gone))
    assert len(journal.open_entries()) == len(made)
