"""Pages as one HTML file: no script, nothing from the network, and every text of a run escaped by the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from lxml import etree

from vmlab.report.blocks import Beside, Block, Chart, Column, Heading, Notes, Section, Table, Text, shown
from vmlab.report.figures import struck_parts
from vmlab.report.page.theme import style_sheet
from vmlab.report.words import capital

MOST_BYTES = 2_000_000
"""The largest page: what is spare and does not fit is left out, and the page says so."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = Path(__file__).parents[1] / "page" / "page.css"
Part = etree._Element | str


def html_page(title: str, blocks: Iterable[Block]) -> bytes:
    """The blocks as a file."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{title} - vmlab"),
        el("style", style_sheet(_STYLE.read_text(encoding="utf-8"))),
    )
    page = _Page()
    root = el("html", head, el("body", *page.elements(blocks, 2)), lang="en")
    page.fill(MOST_BYTES - len(_written(root)))
    return _written(root)


def _written(root: etree._Element) -> bytes:
    return etree.tostring(root, method="html", doctype="<!DOCTYPE html>", encoding="utf-8")


def el(tag: str, *parts: Part, **attributes: str) -> etree._Element:
    """An element of texts and elements; ``class_`` is its class."""
    element = etree.Element(tag, {name.rstrip("_"): value for name, value in attributes.items() if value})
    last: etree._Element | None = None
    for part in parts:
        if not isinstance(part, str):
            element.append(part)
            last = part
        elif last is None:
            element.text = (element.text or "") + part
        else:
            last.tail = (last.tail or "") + part
    return element


def marked(text: str) -> list[Part]:
    """A text with its struck figures as elements."""
    return [el("s", part) if place % 2 else part for place, part in enumerate(struck_parts(text))]


class _Page:
    """Writes blocks once. Spare ones have an empty place, which is filled when the size of all others is known."""

    def __init__(self) -> None:
        self._charts = 0
        self._spare: list[tuple[etree._Element, Chart | Section]] = []

    def elements(self, blocks: Iterable[Block], level: int) -> Iterator[etree._Element]:
        """The elements of blocks; `level` is that of the headings of their sections."""
        for kind, group in groupby(shown(blocks), key=_kind):
            made = [one for block in group for one in self._of(block, level)]
            if kind == "chart":
                yield el("div", *made, class_="charts")
            elif kind == "section" and level == 3 and made:
                yield el("div", *made, class_="cells")
            else:
                yield from made

    def fill(self, room: int) -> None:
        """Put in what is spare, sections first, as long as there are so many bytes of room."""
        full: set[str] = set()
        for place, block in sorted(self._spare, key=lambda one: isinstance(one[1], Chart)):
            parent = place.getparent()
            assert parent is not None
            if block.spare in full:
                parent.remove(place)
                continue
            made = self._drawn(block) if isinstance(block, Chart) else self._folded(block, 3)
            size = len(etree.tostring(made, method="html", encoding="utf-8"))
            if size > room:
                full.add(block.spare)
                made = el("p", block.spare, class_="note")
                size = len(etree.tostring(made))
            parent.replace(place, made)
            room -= size

    def _of(self, block: Block, level: int) -> Iterator[etree._Element]:
        match block:
            case Chart() | Section() if block.spare:
                place = el("span")
                self._spare.append((place, block))
                yield place
            case Heading():
                # A summary is prose, in which programs stand between backticks.
                yield el("h1", block.text.replace("`", ""))
            case Text(tone="pre"):
                yield el("pre", block.text)
            case Text():
                yield el("p", *marked(block.text.strip()), class_=block.tone)
            case Notes(tone="answer"):
                classes = {block.stands_out: "missed"}
                said = (el("p", *marked(text), class_=classes.get(text, "")) for text in block.texts)
                yield el("div", *said, class_="answer")
            case Notes():
                yield from (el("p", *marked(text.strip()), class_=block.tone) for text in block.texts)
            case Table():
                yield _table(block)
            case Chart():
                yield self._drawn(block)
            case Section():
                yield from self._section(block, level)
            case Beside():
                yield from self.elements([block.first, block.second], level)

    def _section(self, section: Section, level: int) -> Iterator[etree._Element]:
        if section.folded:
            yield self._folded(section, level)
            return
        inner = list(self.elements(section.blocks, level + 1))
        first = next(iter(section.blocks), None)
        title = [el(f"h{level}", capital(section.title))] if section.title else []
        if isinstance(first, Notes) and first.tone == "answer":
            yield el("div", *inner, class_="first")
        elif level == 3:
            yield el("section", *title, *inner, class_="cell")
        else:
            yield from (*title, *inner)

    def _folded(self, section: Section, level: int) -> etree._Element:
        return el("details", el("summary", capital(section.title)), *self.elements(section.blocks, level + 1))

    def _drawn(self, chart: Chart) -> etree._Element:
        self._charts += 1
        svg = chart.draw(f"c{self._charts}-")
        svg.set("aria-label", chart.title)
        return el("figure", el("figcaption", f"{chart.title}. {chart.note}".rstrip()), svg)


def _kind(block: Block) -> str:
    match block:
        case Chart():
            return "chart"
        case Section(folded=False):
            return "section"
        case _:
            return ""


def _table(table: Table) -> etree._Element:
    """A table, which scrolls where it is wider than the page."""
    heads = (el("th", ", ".join(filter(None, [*column.above, column.heading]))) for column in table.columns)
    rows = (
        el("tr", el("th", label), *(_cell(column, place) for column in table.columns))
        for place, label in enumerate(table.full_labels)
    )
    caption = [el("caption", table.caption)] if table.caption else []
    top = el("thead", el("tr", el("th", table.corner), *heads))
    return el("div", el("table", *caption, top, el("tbody", *rows)), class_="scroll")


def _cell(column: Column, place: int) -> etree._Element:
    text, *note = column.said(place)
    tone = column.tones[place] if column.tones else ""
    return el("td", *marked(text), *(el("small", words) for words in note), class_=tone)
