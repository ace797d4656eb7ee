"""What a page is made of: a tree of blocks that says what is shown, and leaves to each writer how it looks.

Every text in a block is visible (`model.visible`) before a writer has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vmlab.system.text_width import width_of

if TYPE_CHECKING:
    from lxml import etree


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a page or a run."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph. `tone` is ``note`` for small print, ``warn`` for what makes a page doubtful, ``sub`` for what stands
    below a title, ``pre`` for a text that has its own lines, or ``""``.

    A terminal breaks it into lines of which later ones begin with `indent`; a `cut` one is one line.
    """

    text: str
    tone: str = ""
    indent: str = "  "
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences that stand below each other; `tone`, `indent` and `cut` are those of `Text`.

    The tone ``answer`` is for what a page says first, the most important sentence first; one of them may stand out.
    """

    texts: Sequence[str]
    tone: str = "note"
    indent: str = "  "
    cut: bool = False
    stands_out: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and the texts below it, one for each row. `beside` keeps it next to the column before it.

    `above` are headings that it may share with its neighbours, the outermost first; such columns stay together.
    `notes` say more of each text where there is room for it, which a terminal has not, and `tones` how it stands out.
    """

    heading: str
    texts: Sequence[str]
    beside: bool = False
    above: tuple[str, ...] = ()
    notes: Sequence[str] = ()
    tones: Sequence[str] = ()

    def said(self, place: int) -> list[str]:
        """The text in a row, and what its note says more."""
        note = self.notes[place] if self.notes else ""
        return [self.texts[place], *([note] if note else [])]

    @property
    def width(self) -> int:
        """Columns of a terminal that its widest text takes."""
        return max(width_of(text) for text in (self.heading, *self.texts))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their `labels` to the left under `corner`, figures to the right of their columns.

    A terminal cuts long labels, but never the `units` behind them; `wide` ones have up to half of its width.
    """

    corner: str
    labels: Sequence[str]
    columns: Sequence[Column]
    caption: str = ""
    units: Sequence[str] = ()
    wide: bool = False

    @property
    def full_labels(self) -> list[str]:
        """The labels with their units."""
        return [f"{label}{tail}" for label, tail in zip(self.labels, self.tails, strict=True)]

    @property
    def tails(self) -> list[str]:
        """What stands behind each label."""
        return [f" ({unit})" if unit else "" for unit in self.units or [""] * len(self.labels)]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its title, and a note on what it shows or leaves out. `draw` makes it, with names of its prefix.

    Where a page has no room for one that is `spare`, that sentence stands in place of it and all that follow.
    """

    title: str
    draw: Callable[[str], etree._Element]
    note: str = ""
    spare: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks that belong together under a `title`, which may be empty.

    A page has a `folded` one closed under its title, and text without that title. Markdown, which cannot fold, leaves a
    `long` one out. `spare` is as of a chart.
    """

    title: str
    blocks: Sequence[Block]
    folded: bool = False
    long: bool = False
    spare: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """Two sections that text has side by side where it is wide enough for both; else, and elsewhere, one follows."""

    first: Section
    second: Section


Block = Heading | Text | Notes | Table | Chart | Section | Beside


def shown(blocks: Iterable[Block]) -> Iterator[Block]:
    """Those that have something to show: a writer leaves out the others, so that nobody asks who makes them."""
    return (block for block in blocks if not _is_empty(block))


def _is_empty(block: Block) -> bool:
    match block:
        case Text():
            return not block.text
        case Notes():
            return not block.texts
        case Table():
            return not (block.labels and block.columns)
        case Section():
            return all(map(_is_empty, block.blocks))
        case Beside():
            return _is_empty(block.first) and _is_empty(block.second)
        case _:
            return False
