"""The chapters of the demo: where each begins in the recording, and its sentence with the recording's figures."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.cell_event import CacheSwitched, CellEnded, CellStarted, PhaseEnded, PhaseStarted
from vmlab.model.errors import StoreError, VmlabError
from vmlab.model.event import RunStarted
from vmlab.report.demo.duration import BOOK, FOLDER
from vmlab.report.demo.facts import Facts, facts_of
from vmlab.report.writers.text import paragraph
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE
from vmlab.system.text_width import WIDTH

_KINDS = (RunStarted, CellStarted, PhaseStarted, PhaseEnded, CacheSwitched, CellEnded)


class Chapter(NamedTuple):
    """A part of the story, from `position` on, in seconds from the recording's beginning, with one sentence."""

    position: float
    title: str
    sentence: str


class Stretch(NamedTuple):
    """The recording up to `until`, in seconds from its beginning, played `rate` times as fast as it was.

    It belongs to the chapter number `place`, from 0; None where it is only passed on the way to the next one.
    """

    until: float
    rate: float
    place: int | None


class Demo(NamedTuple):
    """The recording in `store`, the `question` that it answers, its chapters, the `stretches` in which it is played.

    What it is `about` stands below the question. Each chapter stands for as long as it takes to read it; what lies
    behind it is fast-forwarded. `ending` is said when it is over.
    """

    store: Path
    chapters: tuple[Chapter, ...]
    stretches: tuple[Stretch, ...]
    ending: Chapter
    facts: Facts
    question: str
    about: str

    def place(self, position: float) -> int:
        """The number of the chapter at `position` seconds, from 0; the first also stands for what is before it."""
        return max(0, sum(chapter.position <= position for chapter in self.chapters) - 1)

    def stretch(self, position: float) -> Stretch:
        """The stretch in which `position` lies; behind the last one, that."""
        return next((stretch for stretch in self.stretches if position < stretch.until), self.stretches[-1])

    def onward(self, position: float, seconds: float) -> float:
        """Where the recording is when it was played for `seconds` from `position` on."""
        for stretch in self.stretches:
            left = stretch.until - position
            if left > seconds * stretch.rate:
                break
            if left > 0:
                position, seconds = stretch.until, seconds - left / stretch.rate
        return position + seconds * self.stretch(position).rate

    @property
    def seconds(self) -> float:
        """How long it plays from its first chapter to its last."""
        starts = [self.chapters[0].position, *(stretch.until for stretch in self.stretches[1:])]
        return sum(
            (stretch.until - start) / stretch.rate for start, stretch in zip(starts, self.stretches[1:], strict=False)
        )


def load_demo(folder: Path = FOLDER) -> Demo:
    """The demo in `folder`, which has a run's store and its chapters. Both are only read.

    Raises StoreError and UsageError, with one line, where one of them is damaged or they do not fit each other.
    """
    store, book = folder / STORE, folder / BOOK
    with RunReader(store) as reader:
        run = RunTimeline.read(reader, _KINDS)
        facts = facts_of(reader)
    try:
        told = tomllib.loads(book.read_text(encoding="utf-8"))
        began, _ = run.clocks[0]
        chapters = tuple(_chapter(entry, run.cells[entry["cell"]], began, facts) for entry in told["chapters"])
        ending = Chapter(run.last_mono - began, told["ending"]["title"], told["ending"]["sentence"].format(facts=facts))
        if not chapters or list(chapters) != sorted(chapters):
            raise ValueError("its chapters are not in the order of time")
        ends = [_moments(run.cells[entry["cell"]])["end"] - began for entry in told["chapters"]]
        question, about = told["stage"]["question"], told["stage"]["about"].format(facts=facts)
        stretches = tuple(_stretches(chapters, ends, ending.position, told))
        return Demo(store, chapters, stretches, ending, facts, question, about)
    except VmlabError:
        raise
    except OSError as error:
        raise StoreError(f"cannot read {book}: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # What a template or a table of TOML lacks comes as one of these, with its name.
        raise StoreError(f"cannot read {book}: {error}") from error


def _stretches(
    chapters: Sequence[Chapter], ends: Sequence[float], end: float, told: Mapping[str, Any]
) -> Iterator[Stretch]:
    """How the recording is played: `ends` are the ends of the cells of which chapters tell."""
    seconds, forward = float(told["chapter_seconds"]), float(told["forward_seconds"])
    if chapters[0].position > 0:
        yield Stretch(chapters[0].position, chapters[0].position / forward, 0)
    for place, (chapter, over) in enumerate(zip(chapters, ends, strict=True)):
        following = chapters[place + 1].position if place + 1 < len(chapters) else end
        until = min(following, over, chapter.position + seconds * float(told["speed"]))
        yield Stretch(until, (until - chapter.position) / seconds, place)
        if until < following:
            yield Stretch(following, (following - until) / forward, None)


def _chapter(entry: dict[str, Any], cell: CellTimeline, began: float, facts: Facts) -> Chapter:
    moments, at = _moments(cell), entry["at"]
    if at not in moments:
        raise ValueError(f"cell {cell.told.cell} of the recording has no {at!r}")
    sentence = entry["sentence"].format(facts=facts, cell=facts.cells[cell.told.cell])
    return Chapter(moments[at] - began, entry["title"], sentence)


def _moments(cell: CellTimeline) -> dict[str, float]:
    """Where chapters may begin, on the monotonic clock: the phases of a cell, its first ``switch`` and its ``end``."""
    found = {span.phase: span.since for span in reversed(cell.spans)}
    if cell.changes:
        found["switch"] = cell.changes[0].mono
    if cell.ended is not None:
        found["end"] = cell.ended
    return found


def chapters_text(demo: Demo, width: int = WIDTH) -> str:
    """The chapters for a terminal without a screen: a line with time and title for each, and its sentence below."""
    facts = demo.facts
    where = f"recorded on {facts.date} on {facts.host}; guests {facts.guests}; played in {demo.seconds:.0f} s"
    lines = paragraph(where, width)
    for number, chapter in enumerate(demo.chapters, start=1):
        minutes, seconds = divmod(int(chapter.position), 60)
        lines += ["", f"{number}  {minutes}:{seconds:02d}  {chapter.title}"]
        lines += paragraph(f"   {chapter.sentence}", width, "   ")
    return "\n".join([*lines, "", *paragraph(f"{demo.ending.title}: {demo.ending.sentence}", width)])
