"""Joins pictures of the console to one SVG that moves by itself, without a script.

Each part of a picture that stands in several of them is written once, and CSS shows it while its pictures are shown. A
viewer that plays nothing, or a reader who asked for less motion, sees the picture that was chosen as the still one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

_SVG = "{http://www.w3.org/2000/svg}"
_DROPPED = ("class", "clip-path", "shape-rendering")


class Part(NamedTuple):
    """A rectangle of background, or a text in a `style`, with its attributes."""

    is_text: bool
    style: str
    attributes: tuple[tuple[str, str], ...]
    text: str


class Picture(NamedTuple):
    """One exported picture: its view box, the frame around it as SVG, where its parts are moved to, and these."""

    view: str
    around: str
    moved: str
    parts: tuple[Part, ...]


def picture_of(svg: str) -> Picture:
    """Takes a picture of the console apart."""
    root = etree.fromstring(svg.encode())
    styles = dict(re.findall(r"\.(terminal-\w+-r\d+) \{ (.*?) \}", "".join(map(str, root.itertext(f"{_SVG}style")))))
    (inner,) = [group for group in root.findall(f"{_SVG}g") if group.get("clip-path")]
    parts = [
        Part(
            element.tag == f"{_SVG}text",
            styles.get(element.get("class", ""), ""),
            tuple((str(name), str(value)) for name, value in element.attrib.items() if name not in _DROPPED),
            element.text or "",
        )
        for element in inner.iter(f"{_SVG}rect", f"{_SVG}text")
    ]
    around = [
        etree.tostring(element, encoding="unicode", with_tail=False)
        for element in root
        if element.tag in (f"{_SVG}rect", f"{_SVG}g") and element is not inner
    ]
    return Picture(root.get("viewBox", ""), "".join(around), inner.get("transform", ""), tuple(parts))


def moving(svgs: Sequence[str], seconds: Sequence[float], still: int) -> str:
    """One SVG that shows each picture for so many `seconds`, again and again; picture `still` where nothing moves."""
    pictures = [picture_of(svg) for svg in svgs]
    shown: dict[Part, list[int]] = {}
    for number, picture in enumerate(pictures):
        for part in dict.fromkeys(picture.parts):
            shown.setdefault(part, []).append(number)
    styles = {style: f"s{place}" for place, style in enumerate(dict.fromkeys(part.style for part in shown))}
    spans = {span: f"v{place}" for place, span in enumerate(dict.fromkeys(map(tuple, shown.values())))}
    body = [
        line
        for is_text in (False, True)
        for span, name in spans.items()
        if (line := _group(name, [p for p, at in shown.items() if tuple(at) == span and p.is_text is is_text], styles))
    ]
    first = pictures[0]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{first.view}">\n<style>\n'
        f"text{{font:20px Fira Code,monospace;white-space:pre}}\n"
        + "".join(f".{name}{{{style}}}\n" for style, name in styles.items() if style)
        + "".join(_rules(spans, seconds, still))
        + f"</style>\n{first.around}\n<g transform={quoteattr(first.moved)}>\n"
        + "\n".join(body)
        + "\n</g>\n</svg>\n"
    )


def _group(name: str, parts: Iterable[Part], styles: dict[str, str]) -> str:
    """The parts that stand in the same pictures; empty for none."""
    elements = "".join(_element(part, styles[part.style]) for part in parts)
    return f'<g class="{name}">{elements}</g>' if elements else ""


def _element(part: Part, style: str) -> str:
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in part.attributes)
    if not part.is_text:
        return f"<rect{attributes}/>"
    return f'<text class="{style}"{attributes}>{escape(part.text)}</text>'


def _rules(spans: dict[tuple[int, ...], str], seconds: Sequence[float], still: int) -> Iterator[str]:
    """When each group is seen. What stands in all pictures needs no rule."""
    whole = sum(seconds)
    starts = [100 * sum(seconds[:number]) / whole for number in range(len(seconds))]
    for span, name in spans.items():
        if len(span) == len(seconds):
            continue
        seen = [number in span for number in range(len(seconds))]
        steps = "".join(
            f"{starts[number]:.4g}%{{visibility:{'visible' if seen[number] else 'hidden'}}}"
            for number in range(len(seconds))
            if number == 0 or seen[number] is not seen[number - 1]
        )
        rest = "visible" if still in span else "hidden"
        yield f".{name}{{visibility:{rest};animation:{name} {whole:g}s step-end infinite}}\n"
        yield f"@keyframes {name}{{{steps}}}\n"
    yield "@media (prefers-reduced-motion:reduce){g{animation:none!important}}\n"
