"""Charts by matplotlib, as SVG whose colours are the page's. Imported only when a report is written."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from lxml import etree
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import get_named_colors_mapping
from matplotlib.figure import Figure

from vmlab.report.figures import INVALID, spread_text
from vmlab.report.page.theme import DASHES, GROUND, HATCHES, INK, LINE, MARKERS, MUTED, SERIES, light_colors, theme

_SMALL = 8
"""Points of the smallest text: on a phone a point is about a pixel of CSS."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "vmlab",
    # Names from a scenario are text, also where they have a dollar sign.
    "text.parse_math": False,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": _SMALL,
    "hatch.linewidth": 0.6,
    "hatch.color": INK,
}
_WIDTH = 5.0
"""Inches of 72 points: a chart is about as wide as the screen of a phone, and is made larger elsewhere."""
_DPI = 200
"""Of a picture in pixels."""
_SVG_DPI = 72
"""With which matplotlib draws SVG, whose pixel is a point."""
_LONGEST = 26
_OVER: Any = ("data", "axes fraction")
_NEAR: dict[str, Any] = {"textcoords": "offset points", "fontsize": _SMALL, "color": INK}
_MARK: dict[str, Any] = {**_NEAR, "xytext": (2, 1), "va": "bottom", "annotation_clip": False}
_BESIDE: dict[str, Any] = {**_NEAR, "xytext": (4, 0), "va": "center"}
_HREF = "{http://www.w3.org/1999/xlink}href"


@dataclass(frozen=True, slots=True)
class Point:
    """A figure with the half width of its interval, None for a single reading; no `value` where there is none."""

    value: float | None
    half: float | None = None
    passed: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """Points or values under one name; of a stack an `idle` one has an outline alone, as it is no work."""

    name: str
    points: Sequence[Point] = ()
    values: Sequence[float] = ()
    idle: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A bar of a timeline, in seconds."""

    row: str
    since: float
    until: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """A strip of a timeline: lines over `seconds`, `stacked` as areas or drawn as lines, up to `top` where given."""

    label: str
    seconds: Sequence[Sequence[float]]
    lines: Sequence[Line]
    stacked: bool = False
    top: float | None = None


@dataclass(slots=True)
class Timeline:
    """What is drawn of one cell. `marks` are lines across all tracks: moments in seconds, and their words."""

    spans: list[Span] = field(default_factory=list)
    tracks: list[Track] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dots:
    """A row for each name, and in it each line's figure with its interval: on a page when called, or in a file.

    `under` has what stands below the names.
    """

    rows: Sequence[str]
    lines: Sequence[Line]
    label: str
    under: Sequence[str] = ()

    def __call__(self, prefix: str) -> etree._Element:
        with mpl.rc_context(_STYLE):
            return _svg(_dots(self), prefix)

    def picture(self, title: str, ending: str) -> bytes:
        """The chart under its title, in the page's light colours, as ``svg`` or ``png``."""
        file = io.BytesIO()
        with mpl.rc_context(_STYLE), _light():
            figure = _dots(self)
            # A unit stays with its number.
            figure.suptitle("\n".join(wrap(title.replace(" %", "\u00a0%"), 64)), fontsize=10)
            metadata = {"Date": None, "Creator": None} if ending == "svg" else {"Software": None}
            figure.savefig(file, format=ending, dpi=_DPI, facecolor=GROUND, metadata=metadata)
        return file.getvalue()


@contextmanager
def _light() -> Iterator[None]:
    """The page's colours on a light ground under the names that charts are drawn with."""
    known = get_named_colors_mapping()
    colors = light_colors(Path(__file__).with_name("page.css").read_text(encoding="utf-8"))
    for name, color in colors.items():
        known[name] = color
    try:
        yield
    finally:
        for name in colors:
            del known[name]


def _dots(dots: Dots) -> Figure:
    rows, lines = dots.rows, dots.lines
    figure, axes = _figure(0.9 + 0.16 * len(lines) + 0.22 * len(rows) * max(1.6, 0.8 * len(lines)))
    step = 0.7 / max(1, len(lines))
    largest = max((p.value or 0.0) + (p.half or 0.0) for line in lines for p in line.points) if rows else 1.0
    for number, line in enumerate(lines):
        color, marker = _color(number), MARKERS[number % len(MARKERS)]
        for place, point in enumerate(line.points):
            if point.value is None:
                continue
            height = place + (number - (len(lines) - 1) / 2) * step
            axes.errorbar(
                *(point.value, height),
                xerr=point.half,
                fmt=marker,
                color=color,
                markerfacecolor=color if point.passed else "none",
                capsize=3,
                markersize=5,
            )
            text = spread_text(point.value, point.half)
            axes.annotate(
                text if point.passed else f"{text} {INVALID}",
                (point.value + (point.half or 0.0), height),
                **_BESIDE,
            )
        axes.plot([], [], marker=marker, color=color, linestyle="none", label=_cut(line.name))
    under = dots.under or [""] * len(rows)
    names = [f"{_cut(row)}\n{words}".rstrip() for row, words in zip(rows, under, strict=True)]
    axes.set_yticks(range(len(rows)), names, multialignment="right")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    # The room to the right is for the figures' texts.
    doubtful = any(not point.passed for line in lines for point in line.points)
    axes.set_xlim(0, largest * (1.5 if doubtful else 1.3) or 1.0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(dots.label)
    if len(lines) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(3, len(lines)), borderaxespad=0.2)
    return figure


def over(values: Sequence[float], lines: Sequence[Line], axis: str, label: str, prefix: str) -> etree._Element:
    """Figures with their intervals over the values of an axis."""
    with mpl.rc_context(_STYLE):
        figure, axes = _figure(3.0)
        for number, line in enumerate(lines):
            places = zip(values, line.points, strict=True)
            known = [(x, p.value, p.half or 0.0) for x, p in places if p.value is not None]
            axes.errorbar(
                *([x for x, _, _ in known], [y for _, y, _ in known]),
                yerr=[half for _, _, half in known],
                marker=MARKERS[number % len(MARKERS)],
                linestyle=DASHES[number % len(DASHES)],
                color=_color(number),
                capsize=3,
                label=_cut(line.name),
            )
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set_ylim(bottom=0)
        axes.set_xlabel(axis)
        axes.set_ylabel(label)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(3, len(lines)), borderaxespad=0.2)
        return _svg(figure, prefix)


def bars(rows: Sequence[str], lines: Sequence[Line], label: str, top: float | None, prefix: str) -> etree._Element:
    """A bar for each name, in which the lines' values are stacked."""
    with mpl.rc_context(_STYLE):
        figure, axes = _figure(0.9 + 0.26 * len(rows))
        left = [0.0] * len(rows)
        for number, line in enumerate(lines):
            axes.barh(
                *(range(len(rows)), list(line.values)),
                left=left,
                height=0.7,
                color=_color(number),
                hatch=HATCHES[number % len(HATCHES)],
                edgecolor=INK,
                linewidth=0.4,
                label=_cut(line.name),
            )
            left = [before + value for before, value in zip(left, line.values, strict=True)]
        for place, total in enumerate(left):
            axes.annotate(spread_text(total), (total, place), **_BESIDE)
        axes.set_yticks(range(len(rows)), [_cut(row) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, (top or max([*left, 0.0]) or 1.0) * 1.15)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(label)
        if len(lines) > 1:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
        return _svg(figure, prefix)


def timeline(drawn: Timeline, prefix: str, width: float = _WIDTH) -> etree._Element:
    """Phases and workloads above, and below them the tracks, all over the same seconds; `width` is in inches."""
    rows = list(dict.fromkeys(span.row for span in drawn.spans))
    heights = [0.45 + 0.16 * len(rows), *([1.0] * len(drawn.tracks))]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, sum(heights) + 0.5), layout="constrained")
        strips = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
        _spans(strips[0][0], rows, drawn.spans, round(_LONGEST * width / _WIDTH))
        for axes, track in zip((strip[0] for strip in strips[1:]), drawn.tracks, strict=True):
            _track(axes, track)
        for moment, words in drawn.marks:
            for (axes,) in strips:
                axes.axvline(moment, color=INK, linewidth=1, linestyle="--")
            # Over the first track: above the phases stand their names.
            strips[min(1, len(strips) - 1)][0].annotate(words, (moment, 1), xycoords=_OVER, **_MARK)
        strips[-1][0].set_xlabel("seconds since the cell began")
        return _svg(figure, prefix)


def _spans(axes: Axes, rows: Sequence[str], spans: Sequence[Span], longest: int) -> None:
    for place, row in enumerate(rows):
        own = [(span.since, span.until - span.since) for span in spans if span.row == row]
        color = _color(2 if place else 0)
        axes.broken_barh(own, (place - 0.35, 0.7), facecolor=color, edgecolor=INK, linewidth=0.3)
        for number, span in enumerate(_labelled(row, spans)):
            middle, low = (span.since + span.until) / 2, number % 2
            axes.annotate(span.text, (middle, -0.45 - 0.55 * low), ha="center", va="bottom", fontsize=_SMALL, color=INK)
            axes.axvline(span.until, color=LINE, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [_cut(row, longest) for row in rows], fontsize=_SMALL)
    axes.set_ylim(len(rows) - 0.5, -1.9)
    axes.grid(axis="y", visible=False)


def _labelled(row: str, spans: Sequence[Span]) -> list[Span]:
    """The bars of a row that are long enough for their text, at a twentieth of the whole."""
    whole = max(span.until for span in spans)
    return [span for span in spans if span.row == row and span.text and span.until - span.since >= whole / 20]


def _track(axes: Axes, track: Track) -> None:
    if track.stacked and track.lines:
        areas = axes.stackplot(
            track.seconds[0],
            *[line.values for line in track.lines],
            colors=["none" if line.idle else _color(number) for number, line in enumerate(track.lines)],
            labels=[line.name for line in track.lines],
            linewidth=0.3,
            edgecolor=INK,
        )
        for area, hatch, line in zip(areas, HATCHES, track.lines, strict=False):
            area.set_hatch("" if line.idle else hatch)
    else:
        for number, line in enumerate(track.lines):
            look: dict[str, Any] = {"color": _color(number), "linestyle": DASHES[number % len(DASHES)]}
            axes.plot(track.seconds[number], line.values, label=line.name, linewidth=1, **look)
    axes.set_ylabel(track.label, fontsize=_SMALL)
    axes.set_ylim(0, track.top)
    if len(track.lines) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0.1, fontsize=_SMALL, handlelength=1.5)


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, max(1.4, height)), layout="constrained")
    return figure, figure.add_subplot()


def _svg(figure: Figure, prefix: str) -> etree._Element:
    """The figure as an element to stand in a page; its names begin with `prefix`, as a page has many charts."""
    figure.patch.set_alpha(0)
    for axes in figure.axes:
        axes.patch.set_alpha(0)
    FigureCanvasSVG(figure)
    _lay_out(figure)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    root = etree.fromstring(text.getvalue().encode(), etree.XMLParser(resolve_entities=False))
    for metadata in root.findall("{*}metadata"):
        root.remove(metadata)
    theme(root)
    _rename(root, prefix)
    root.set("role", "img")
    del root.attrib["width"], root.attrib["height"]
    return root


def _lay_out(figure: Figure) -> None:
    """Do so once: `savefig` draws what is still to be laid out twice, the first time for the layout alone."""
    if (layout := figure.get_layout_engine()) is not None:
        figure.dpi = _SVG_DPI
        layout.execute(figure)
        figure.set_layout_engine(None)


def _rename(root: etree._Element, prefix: str) -> None:
    """Give `prefix` to the names that something refers to, and take away the others."""
    used = {value.removeprefix("#") for one in root.iter() if (value := one.get(_HREF)) is not None}
    for one in root.iter():
        for name, value in ((str(name), str(value)) for name, value in one.attrib.items()):
            if "url(#" in value:
                used.add(value.split("url(#")[1].split(")")[0])
                one.set(name, value.replace("url(#", f"url(#{prefix}"))
            elif name == _HREF:
                one.set(name, f"#{prefix}{value.removeprefix('#')}")
    for one in root.iter():
        if (own := one.get("id")) is not None:
            del one.attrib["id"]
            if own in used:
                one.set("id", f"{prefix}{own}")


def _color(number: int) -> str:
    return SERIES[number % len(SERIES)]


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
