"""Colours of the report: names that charts are drawn with, and what each is in light, dark and print.

The series colours are those of `telemetry.palette`; markers, dashes and hatches differ too, so that a print without
colour is read as well.
"""

from __future__ import annotations

import re

from lxml import etree

from vmlab.telemetry import palette

INK, MUTED, LINE, GROUND = "#010203", "#010204", "#010205", "#010206"
SERIES = ("#020301", "#020302", "#020303", "#020304", "#020305", "#020306", "#020307")
"""Colours that only stand for a variable of the page; the real ones are in its style sheet."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "///", "\\\\\\", "---", "|||", "xx", "++")
"""Of lines alone, as dots would take most of the page."""

_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    LINE: "--line",
    GROUND: "--ground",
    **{color: f"--s{number}" for number, color in enumerate(SERIES, start=1)},
}
_COLOR = re.compile("|".join(_VARIABLES))
_DIGITS = re.compile(r"(\d+\.\d\d)\d+")
_DRAWN = ("d", "points", "transform", "x", "y", "width", "height")


def theme(root: etree._Element) -> None:
    """Put the page's variables in place of a chart's colours, and leave no more digits than can be seen.

    Only attributes are changed, never the text of a name.
    """
    for element in root.iter():
        for name, value in element.attrib.items():
            text, value = str(name), str(value)
            if text in _DRAWN:
                element.set(text, _DIGITS.sub(r"\1", value))
            elif text in ("fill", "stroke") and value in _VARIABLES:
                # A variable needs a style; as an attribute it would be no colour.
                del element.attrib[text]
                element.set("style", f"{element.get('style', '')};{text}: {_variable(value)}".lstrip(";"))
            elif text == "style":
                element.set(text, _COLOR.sub(lambda found: _variable(found[0]), element.get("style", "")))


def style_sheet(text: str) -> str:
    """The page's style sheet `text`, with the palette's colours as variables in light, dark and print."""
    names = {**{f"--s{number}": hue for number, hue in enumerate(palette.SERIES, start=1)}, "--near": palette.NEAR}
    light = " ".join(f"{name}: {hue.light};" for name, hue in names.items())
    dark = " ".join(f"{name}: {hue.dark};" for name, hue in names.items())
    return "\n".join(
        [
            f":root {{ {light} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
            text,
            f"@media print {{ :root {{ {light} }} }}",
        ]
    )


def light_colors(text: str) -> dict[str, str]:
    """The real colour on a light ground, after the style sheet `text`, of each that charts are drawn with."""
    # The light ones are the first.
    known = dict(reversed(re.findall(r"(--\w+): (#\w+);", style_sheet(text))))
    return {color: known[variable] for color, variable in _VARIABLES.items()}


def _variable(color: str) -> str:
    return f"var({_VARIABLES[color]})"
