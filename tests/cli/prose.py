"""Prose of a page of documentation, and what `test_documentation.py` counts of it.

``python -m tests.cli.prose`` prints the words of each page in `docs/`, and of all: what blanks separate, without what
programs write (between comments, and the pages of experiments) and without decisions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
LONGEST_SENTENCE = 30
HABITS = {
    "stand": r"\bstands?\b|\bstood\b|\bstanding\b",
    "that of": r"\b(?:that|those) of\b",
    "nobody, nothing": r"\bnobody\b|\bnothing\b",
    "figure": r"\bfigures?\b",
    "reading": r"\breadings\b|\b(?:a|one|each|first|last|per) reading\b",
    "place": r"(?<!in )\bplaces?\b",
    "look": r"\blooks\b",
    "ordered host": r"\bordered host",
}
"""What to write instead: shown, listed; the noun again; no one, none; metric or value; measurement; configuration;
interim analysis; limited host.
"""
_LEFT_OUT = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL),
    re.compile(r"^ *\|.*$", re.MULTILINE),
    # A block of code follows an empty line; a line of a list that goes on does not.
    re.compile(r"(?:(?<=\n\n)|\A)(?: {4,}(?![-\d]).*\n|\n)+", re.MULTILINE),
)
_GENERATED = re.compile(r"<!-- (?!tried|end)[^>]*-->\n.*?<!-- end -->", re.DOTALL)


def without_generated(text: str) -> str:
    """A page without the parts that a program writes."""
    return _GENERATED.sub("", text)


def prose(text: str) -> str:
    """A page without tables, blocks of code and the addresses of links; code in a line is the word `CODE`."""
    for pattern in _LEFT_OUT:
        text = pattern.sub("\n", text)
    text = re.sub(r"``?[^`]+``?", "CODE", text)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(text: str) -> Iterator[str]:
    """The sentences of prose; a heading, a paragraph and an entry of a list end one."""
    for block in re.split(r"\n\s*\n|\n(?= *(?:[-*] |\d+\. |#))", prose(text)):
        yield from filter(None, re.split(r"(?<=[.!?])[*)]*\s+", " ".join(block.split())))


def long_sentences(text: str) -> list[str]:
    return [one for one in sentences(text) if len(re.findall(r"\w[\w'.,-]*", one)) > LONGEST_SENTENCE]


def habits(text: str) -> dict[str, int]:
    """How often each habit is in the prose of a page."""
    found = prose(text)
    return {name: len(re.findall(pattern, found, re.IGNORECASE)) for name, pattern in HABITS.items()}


def words_by_page() -> dict[Path, int]:
    """How many words each page in `docs/` has that people write, without decisions."""
    pages = [page for page in DOCS.rglob("*.md") if "experiments" not in (page.stem, page.parent.name)]
    return {
        page: len(without_generated(page.read_text(encoding="utf-8")).split())
        for page in sorted(pages)
        if not (page.parent.name == "decisions" and page.stem != "index")
    }


if __name__ == "__main__":
    for each, words in words_by_page().items():
        sys.stdout.write(f"{words:6} {each.relative_to(DOCS)}\n")
    sys.stdout.write(f"{sum(words_by_page().values()):6} all\n")
