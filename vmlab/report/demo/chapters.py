"""The chapters of the demo: where each begins in the recording, and its sentence with the recording's figures."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from vmlab.model.errors import StoreError, VmlabError
from vmlab.model.event import CacheSwitched, CellEnded, CellStarted, Event, PhaseStarted, RunStarted
from vmlab.report.demo.facts import Facts, facts_of
from vmlab.report.grid import WIDTH, paragraph
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE

FOLDER = Path(__file__).parent
BOOK = "chapters.toml"
_KINDS = (RunStarted, CellStarted, PhaseStarted, CacheSwitched, CellEnded)


class Chapter(NamedTuple):
    """A part of the story, from `position` on, in seconds from the recording's beginning, with one sentence."""

    position: float
    title: str
    sentence: str


class Demo(NamedTuple):
    """The recording in `store`, played `speed` times as fast as it was; `ending` is said when it is over."""

    store: Path
    speed: float
    chapters: tuple[Chapter, ...]
    ending: Chapter
    facts: Facts

    def place(self, position: float) -> int:
        """The number of the chapter at `position` seconds, from 0; the first also stands for what is before it."""
        return max(0, sum(chapter.position <= position for chapter in self.chapters) - 1)


def load_demo(folder: Path = FOLDER) -> Demo:
    """The demo in `folder`, which has a run's store and its chapters. Both are only read.

    Raises StoreError and UsageError, with one line, where one of them is damaged or they do not fit each other.
    """
    store, book = folder / STORE, folder / BOOK
    with RunReader(store) as reader:
        events = [event for _, event in reader.events(kinds=_KINDS)]
        facts = facts_of(reader)
    try:
        told = tomllib.loads(book.read_text(encoding="utf-8"))
        chapters = tuple(_chapter(entry, events, facts) for entry in told["chapters"])
        end = max(event.mono for event in events) - events[0].mono
        ending = Chapter(end, told["ending"]["title"], told["ending"]["sentence"].format(facts=facts))
        if not chapters or list(chapters) != sorted(chapters):
            raise ValueError("its chapters are not in the order of time")
        return Demo(store, float(told["speed"]), chapters, ending, facts)
    except VmlabError:
        raise
    except OSError as error:
        raise StoreError(f"cannot read {book}: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # What a template or a table of TOML lacks comes as one of these, with its name.
        raise StoreError(f"cannot read {book}: {error}") from error


def _chapter(entry: dict[str, Any], events: list[Event], facts: Facts) -> Chapter:
    moment = _moment(entry["cell"], entry["at"], events) - events[0].mono
    return Chapter(moment, entry["title"], entry["sentence"].format(facts=facts, cell=facts.cells[entry["cell"]]))


def _moment(cell: int, at: str, events: list[Event]) -> float:
    """When `at` began in a cell, on the monotonic clock: one of its phases, ``switch`` or ``end``."""
    for event in events:
        if getattr(event, "cell", None) == cell and _name(event) == at:
            return event.mono
    raise ValueError(f"cell {cell} of the recording has no {at!r}")


def _name(event: Event) -> str:
    match event:
        case PhaseStarted():
            return event.phase
        case CacheSwitched():
            return "switch"
        case CellEnded():
            return "end"
        case _:
            return ""


def chapters_text(demo: Demo, width: int = WIDTH) -> str:
    """The chapters for a terminal without a screen: a line with time and title for each, and its sentence below."""
    facts = demo.facts
    where = f"recorded on {facts.date} on {facts.host}; guests {facts.guests}; played at {demo.speed:g} times the speed"
    lines = paragraph(where, width)
    for number, chapter in enumerate(demo.chapters, start=1):
        minutes, seconds = divmod(int(chapter.position), 60)
        lines += ["", f"{number}  {minutes}:{seconds:02d}  {chapter.title}"]
        lines += paragraph(f"   {chapter.sentence}", width, "   ")
    return "\n".join([*lines, "", *paragraph(f"{demo.ending.title}: {demo.ending.sentence}", width)])
