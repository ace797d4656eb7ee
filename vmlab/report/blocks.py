"""What a page is made of: a tree of blocks that says what is shown, and leaves to each writer how it looks.

Every text in a block is visible (`model.visible`) before a writer has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """A paragraph. `tone` is ``""``, ``note`` for small print, ``warn`` for what makes a page doubtful, ``missed``.

    A terminal breaks it into lines of which later ones begin with `indent`; where it is `cut` it has one line.
    """

    text: str
    tone: str = ""
    indent: str = "  "
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences that stand below each other; `tone`, `indent` and `cut` are those of `Text`."""

    texts: Sequence[str]
    tone: str = "note"
    indent: str = "  "
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and the texts below it, one for each row. `beside` keeps it next to the column before it.

    `above` are headings that it may share with its neighbours, the outermost first; such columns stay together.
    `notes` say more of each text where there is room for it, which a terminal has not.
    """

    heading: str
    texts: Sequence[str]
    beside: bool = False
    above: tuple[str, ...] = ()
    notes: Sequence[str] = ()

    @property
    def width(self) -> int:
        """Columns of a terminal that its widest text takes."""
        return max(width_of(text) for text in (self.heading, *self.texts))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their `labels` to the left under `corner`, figures to the right of their columns.

    A terminal cuts labels that are longer than `longest`.
    """

    corner: str
    labels: Sequence[str]
    columns: Sequence[Column]
    caption: str = ""
    longest: int = 30


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its title, and a note on what it shows or leaves out; `draw` makes it, with names that begin so.

    `spare` ones are left out where a page has no room for them.
    """

    title: str
    draw: Callable[[str], etree._Element]
    note: str = ""
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """What is folded under its `title` until a reader opens it; only a page can do that, so only a page has it."""

    title: str
    blocks: Sequence[Block]
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks that belong together under a `title`, which may be empty. One without blocks is not shown."""

    title: str
    blocks: Sequence[Block]


Block = Heading | Text | Notes | Table | Chart | Fold | Section
