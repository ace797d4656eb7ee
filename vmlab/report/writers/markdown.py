"""Pages as Markdown, for an issue or a wiki: no charts, and nothing that is too long for these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from vmlab.report.blocks import Beside, Block, Chart, Heading, Notes, Section, Table, Text, shown
from vmlab.report.figures import struck_parts
from vmlab.report.words import capital

_MARKS = re.compile(r"([\\`*_\[\]<>#|~&$@])|^(\s*)([-+=])|^(\s*\d+)([.)])(?=\s|$)")
"""Signs that Markdown, or a site's own additions to it such as mentions, would obey; some only at the beginning."""


def markdown_page(blocks: Iterable[Block]) -> bytes:
    """The blocks as a file."""
    return ("\n".join(_lines(blocks, 1)).rstrip() + "\n").encode("utf-8", "replace")


def escaped(text: str) -> str:
    """Text of a run, with nothing that Markdown would obey."""
    return _MARKS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    if found[1] == "<":
        # Not every page that shows Markdown knows the backslash before it.
        return "&lt;"
    return f"{found[2] or found[4] or ''}\\{found[1] or found[3] or found[5]}"


def _marked(text: str) -> str:
    """Escaped, with the figures of invalid cells struck through."""
    return "".join(
        f"~~{escaped(part)}~~" if place % 2 else escaped(part) for place, part in enumerate(struck_parts(text))
    )


def _lines(blocks: Iterable[Block], level: int) -> Iterator[str]:
    for block in shown(blocks):
        match block:
            case Heading():
                yield from (f"# {escaped(block.text)}", "")
            case Text():
                quote = "> " if block.tone == "warn" else ""
                yield from (f"{quote}{_marked(block.text.strip())}", "")
            case Notes(tone="answer"):
                first, *others = block.texts
                yield from (f"**{_marked(first)}**", "", *(f"- {_marked(text)}" for text in others), "")
            case Notes():
                bullet = "> " if block.tone == "warn" else "- "
                yield from (*(f"{bullet}{_marked(text.strip())}" for text in block.texts), "")
            case Table():
                yield from _table(block, level)
            case Section():
                inner = [] if block.long else list(_lines(block.blocks, level + 1))
                title = [f"{'#' * (level + 1)} {escaped(capital(block.title))}", ""] if block.title else []
                yield from (*title, *inner) if inner else ()
            case Beside():
                yield from _lines([block.first, block.second], level)
            case Chart():
                continue


def _table(table: Table, level: int) -> Iterator[str]:
    if table.caption:
        yield from (f"{'#' * (level + 1)} {escaped(capital(table.caption))}", "")
    heads = [", ".join(filter(None, [*column.above, column.heading])) for column in table.columns]
    yield from (_row(map(_marked, [table.corner, *heads])), _row(["---", *(["---:"] * len(heads))]))
    for place, label in enumerate(table.full_labels):
        texts = (", ".join(column.said(place)) for column in table.columns)
        yield _row(map(_marked, [label, *texts]))
    yield ""


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"
