"""Elements of the report's page: texts of runs are escaped by the tree."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from vmlab.model.ordered import ordered_title
from vmlab.report.figures import struck_parts
from vmlab.report.page.content import Chart

Part = etree._Element | str


def el(tag: str, *parts: Part, **attributes: str) -> etree._Element:
    """An element of texts and elements; ``class_`` is its class."""
    element = etree.Element(tag, {name.rstrip("_"): value for name, value in attributes.items()})
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


def chart_grid(charts: Sequence[Chart], behind: Sequence[str]) -> etree._Element:
    """Charts beside each other, as many as there is room for."""
    return el("div", *(chart_figure(chart, behind) for chart in charts), class_="charts")


def chart_figure(chart: Chart, behind: Sequence[str]) -> etree._Element:
    """A chart under its title, which has the words for what stands behind its figures."""
    title = ordered_title(chart.title, behind)
    chart.svg.set("aria-label", title)
    caption = el("figcaption", f"{title}. {chart.note}".rstrip())
    return el("figure", caption, chart.svg)


def marked(text: str) -> list[Part]:
    """A text with its struck figures as elements."""
    return [el("s", part) if place % 2 else part for place, part in enumerate(struck_parts(text))]
