"""What each medium without a screen tells of runs, as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from lxml import etree, html
from matplotlib.figure import Figure
from matplotlib.text import Text

from vmlab.cli.main import command_line
from vmlab.model.places import shipped_scenarios

OF_ONE = {
    "show": ("show",),
    "show-explain": ("show", "--explain"),
    "show-quiet": ("show", "--quiet"),
    "show-json": ("show", "--json"),
    "cell-1": ("show", "--cell", "1"),
    "cell-2": ("show", "--cell", "2"),
    "reference": ("show", "--reference"),
    "phases": ("show", "--phases"),
    "raw": ("show", "--raw"),
    "advise": ("advise",),
}
"""Commands that tell of one run."""
OF_SEVERAL = {
    "compare": ("compare",),
    "compare-quiet": ("compare", "--quiet"),
    "compare-explain": ("compare", "--explain"),
    "compare-json": ("compare", "--json"),
    "compare-gate": ("compare", "--fail-if", "web > +5 %", "--fail-if", "mail.latency_p95 > 70 ms"),
    "report-md": ("report", "--format", "md"),
    "report-html": ("report", "--format", "html"),
    "csv": ("export", "--format", "csv"),
    "openmetrics": ("export", "--format", "openmetrics"),
    "perfkit": ("export", "--format", "perfkit"),
    "junit": ("export", "--format", "junit"),
}
"""Commands that tell of one run or of several."""
OF_SCENARIO = {
    "plan": ("plan",),
    "plan-json": ("plan", "--seed", "7", "--json"),
    "validate": ("validate",),
    "validate-json": ("validate", "--json"),
}
"""Commands that tell of a scenario."""
_WITHIN = {"a", "b", "br", "code", "del", "em", "i", "s", "small", "span", "strong", "sub", "sup", "td", "th", "title"}
"""Elements that begin no line."""

_PROGRESS = re.compile(r"^[\d.]+ (?:%|s|min|h)[ ,].*\n", re.MULTILINE)
"""What work says of itself that takes more than a moment."""


class Told:
    """Calls commands in this process."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._captured = captured

    def __call__(self, *words: str) -> str:
        """What is printed, or stands in the file that is written; then standard error, and the exit code."""
        file = self._folder / "written"
        writes = words[0] in ("report", "export")
        try:
            code = command_line([*words, *(["-o", str(file)] if writes else [])])
        except SystemExit as end:
            code = int(end.code or 0)
        printed = self._captured.readouterr()
        text = printed.out
        if writes and file.exists():
            text += file.read_bytes().decode()
        if "html" in words and code == 0:
            text = visible_text(text)
        if said := _PROGRESS.sub("", printed.err):
            text += f"--- standard error\n{said}"
        if code:
            text += f"--- exit code {code}\n"
        return text.replace(str(self._folder), "FOLDER").replace(str(shipped_scenarios()), "SHIPPED")


def visible_text(page: str) -> str:
    """The text of a page, a line for each block and each row of a table."""
    lines = [""]
    for kind, words in _pieces(html.document_fromstring(page).find("body")):
        if kind == "text":
            lines[-1] += " ".join(f" {words} ".split()) if words.strip() else ""
        elif lines[-1]:
            lines.append("")
    return "\n".join(lines)


def _pieces(element: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(element.tag, str) or etree.QName(element).localname in ("script", "style"):
        return
    name = etree.QName(element).localname
    kind = "within" if name in _WITHIN else "block"
    if kind == "block":
        yield kind, name
    yield "text", " " if name == "br" else element.text or ""
    for child in element:
        yield from _pieces(child)
        yield "text", child.tail or ""
    if name in ("td", "th"):
        yield "text", "|"
    if kind == "block":
        yield kind, name


def without_drawing(figure: Figure, file: Any, **how: object) -> None:
    """In place of `Figure.savefig`, which takes a second: the words of the chart, and how much it draws."""
    axes = figure.axes
    drawn = [f"chart: {len(one.lines)} lines, {len(one.collections)} areas, {len(one.patches)} bars" for one in axes]
    words = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible()]
    texts = "".join(f"<text>{escape(word)}</text>" for word in [*drawn, *words] if word.strip())
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1">{texts}</svg>')
