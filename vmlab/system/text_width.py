"""How many columns of a terminal a text takes; tables, charts and lines are laid out by these functions alone.

A letter of Chinese, Japanese or Korean and most emoji take two columns, an accent that is a character of its own takes
none, so ``len`` is the width of neither. The widths are those of rich, by which the console's framework draws. A text
is made visible (`model.visible`) before it is measured.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence

WIDTH = 80
"""The width of the smallest terminal that all output must fit."""
UNCUT = sys.maxsize
"""The width for output that does not go to a terminal: programs and files take lines of any length."""
_ONE_EACH = re.compile(r"[ -~\xa0-\xac\xae-\u02ff\u2010-\u2027\u2190-\u2193\u2500-\u259f\u2800-\u28ff]*")
"""Texts of characters of one column each, which most are: rich is loaded for others alone."""


def width_of(text: str) -> int:
    """The columns that `text` takes on a line."""
    if text.isascii() or _ONE_EACH.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def first_columns(text: str, width: int) -> str:
    """As much of the beginning of `text` as has room in `width` columns; a letter keeps its accents."""
    if width_of(text) <= width:
        return text
    taken, end = 0, 0
    for sign in _signs(text):
        taken += width_of(sign)
        if taken > width:
            break
        end += len(sign)
    return text[:end]


def last_columns(text: str, width: int) -> str:
    """As much of the end of `text` as has room in `width` columns."""
    signs, taken = list(_signs(text)), 0
    for place in range(len(signs), 0, -1):
        taken += width_of(signs[place - 1])
        if taken > width:
            return "".join(signs[place:])
    return text


def shortened(text: str, width: int) -> str:
    """`text`; where it is wider than `width`, its end is replaced by an ellipsis."""
    return text if width_of(text) <= width else first_columns(text, max(0, width - 1)) + "…"


def ends_of(text: str, width: int) -> str:
    """`text`; where it is wider than `width`, its beginning and a longer part of its end."""
    if width_of(text) <= width:
        return text
    begin = max(0, width - 1) // 3
    return f"{first_columns(text, begin)}…{last_columns(text, width - 1 - begin)}" if width > 1 else ""


def left(text: str, width: int) -> str:
    """`text` with spaces behind it up to `width` columns."""
    return text + " " * (width - width_of(text))


def right(text: str, width: int) -> str:
    """`text` with spaces before it up to `width` columns."""
    return " " * (width - width_of(text)) + text


def centred(text: str, width: int) -> str:
    """`text` in the middle of `width` columns."""
    return text.center(width - width_of(text) + len(text))


def exactly(text: str, width: int) -> str:
    """`text` in exactly `width` columns, with an ellipsis where something was left out."""
    return left(shortened(text, width), width)


def widest(texts: Sequence[str]) -> int:
    """The columns of the widest of one text or more."""
    plain = "".join(texts).isascii()
    return max(map(len if plain else width_of, texts))


def all_exactly(texts: Sequence[str], width: int) -> list[str]:
    """As `exactly`, of one text or more."""
    if "".join(texts).isascii() and max(map(len, texts)) <= width:
        return [text.ljust(width) for text in texts]
    return [exactly(text, width) for text in texts]


def wrapped(text: str, width: int, *, indent: str = "", hyphens: bool = True, most: int | None = None) -> list[str]:
    """`text` in lines of at most `width` columns, broken at spaces, and within a word that is wider than a line.

    Later lines begin with `indent`; words are broken at hyphens where `hyphens` says so. Of more than `most` lines the
    last ends with an ellipsis.
    """
    if width_of(text) == len(text):
        return textwrap.wrap(
            text, width, subsequent_indent=indent, break_on_hyphens=hyphens, max_lines=most, placeholder=" …"
        )
    lines, line = list[str](), ""
    for word in text.split():
        rest = word
        while rest:
            before = f"{line} " if line.strip() else line
            if width_of(before + rest) <= width:
                line, rest = before + rest, ""
            elif line.strip():
                lines.append(line)
                line = indent
            else:
                # One letter at least, however narrow the line is.
                part = first_columns(rest, width - width_of(line)) or next(_signs(rest))
                lines.append(line + part)
                line, rest = indent, rest[len(part) :]
    lines += [line] if line.strip() else []
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], f"{first_columns(lines[most - 1], width - 2).rstrip()} …"]
    return lines


def _signs(text: str) -> Iterator[str]:
    """The characters of `text`, each with those behind it that take no column of their own, such as accents."""
    begin = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or (width_of(text[place]) and text[place - 1] != "\u200d"):
            yield text[begin:place]
            begin = place
