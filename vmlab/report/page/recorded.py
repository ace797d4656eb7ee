"""What the page of a recording has of the host's own guests: their figures, their disks, and advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lxml import etree

from vmlab.analysis.advice.advice import advise
from vmlab.analysis.shape import RunDocument
from vmlab.report.page.elements import el
from vmlab.report.run.recording_text import (
    ADVICE_TITLE,
    GUESTS_TITLE,
    NO_ADVICE,
    NO_GUEST,
    Grid,
    disk_grid,
    domain_grid,
    domains_of,
)


def recorded_parts(document: RunDocument) -> Iterator[etree._Element]:
    """Tables and sentences; every text of `document` has to be visible."""
    domains = domains_of(document)
    yield el("h2", GUESTS_TITLE)
    if not domains:
        yield el("p", _sentence(NO_GUEST))
        return
    yield el("p", "Means over the recording.", class_="note")
    yield from (_table(one) for one in (domain_grid(domains), disk_grid(domains)))
    yield el("h2", ADVICE_TITLE)
    advised = advise(document)
    if not advised.advice:
        yield el("p", _sentence(NO_ADVICE))
    for one in advised.advice:
        yield el("p", el("b", one.subject), f": {one.matters}.")
        yield el("ul", *(el("li", why) for why in one.why), el("li", "measure it: ", el("code", one.run)))
    if advised.none:
        reasons = (el("li", f"{one.subject}: {one.matters}") for one in advised.none)
        yield el("details", el("summary", f"No advice for {len(advised.none)}"), el("ul", *reasons))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _table(grid: Grid) -> etree._Element:
    columns: Sequence[Sequence[str]] = [column.texts for column in grid.columns]
    top = el("tr", el("th", grid.head), *(el("th", column.heading) for column in grid.columns))
    rows = (
        el("tr", el("th", name), *(el("td", texts[place]) for texts in columns))
        for place, name in enumerate(grid.names)
    )
    return el("div", el("table", el("thead", top), el("tbody", *rows)), class_="scroll")
