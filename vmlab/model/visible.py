"""Makes characters visible that a terminal would obey and not show. All text for people goes through here.

These are control characters (C0, DEL, C1), characters that change the direction of text or take no room, line and
paragraph separators, and bytes that are not UTF-8, which Python represents as lone surrogates. They come from
scenarios, from options, from names of files and from what tools in guests printed. Python counts none of them as
printable, so characters that a version of Python does not know are made visible as well.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from typing import Any, TypeVar

V = TypeVar("V")
_LONGEST_QUOTED = 61


class Control(str):
    """A terminal sequence of the program's own, such as one that clears a line; it is written unchanged."""

    __slots__ = ()


def visible(text: str) -> str:
    """`text` for people: line breaks and tabs stay, everything else that a terminal would obey becomes an escape.

    A byte that is not UTF-8 becomes ``\\x9b``, a control character ``\\x1b``, any other character ``\\u202e``.
    """
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else _visible_part(line) for line in text.split("\n"))


def _visible_part(line: str) -> str:
    return "".join(sign if sign == "\t" or _harmless(sign) else escape(sign) for sign in line)


def visible_line(text: str) -> str:
    """As `visible`, for text that must stay on one line: line breaks and tabs become ``\\n`` and ``\\t``."""
    if text.isprintable():
        return text
    return "".join(sign if _harmless(sign) else escape(sign) for sign in text)


def cut(text: str, most: int) -> str:
    """The text, of which so many signs at most are shown."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def quoted(word: str) -> str:
    """What a user typed, for a message: in quotation marks, and shortened if it is long."""
    return repr(cut(word, _LONGEST_QUOTED))


def visible_json(text: str) -> str:
    """A JSON document, as `json.dumps` wrote it, with such characters as JSON's escapes; its value does not change."""
    if text.isprintable():
        return text
    return "".join(sign if sign == "\n" or _harmless(sign) else _json_escape(sign) for sign in text)


def visible_values(value: V) -> V:
    """A copy of a document, or of a frozen dataclass, in which every text is a `visible_line`, keys included."""
    copy: V = _visible(value)
    return copy


def _visible(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return visible_line(value)
    # Values of enumerations are the program's own and stay enumerations.
    if kind in _NUMBERS or isinstance(value, str | int | float):
        return value
    # Documents are mostly numbers and words, for each of which a call would take longer than all else.
    if isinstance(value, dict):
        return {
            key if type(key) is str and key.isprintable() else _visible(key): inner
            if type(inner) in _NUMBERS or (type(inner) is str and inner.isprintable())
            else _visible(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return kind([inner if type(inner) in _NUMBERS else _visible(inner) for inner in value])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if kind not in _FIELDS:
            _FIELDS[kind] = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **_visible({name: getattr(value, name) for name in _FIELDS[kind]}))
    return value


_NUMBERS = {int, float, bool, type(None)}
_FIELDS: dict[type[Any], list[str]] = {}
"""The names of the fields of dataclasses."""


def escape(sign: str) -> str:
    """The escape that stands for one character."""
    number = ord(sign)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    if number > 0xFFFF:
        return f"\\U{number:08x}"
    if number > 0x7F:
        return f"\\u{number:04x}"
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(sign, f"\\x{number:02x}")


def _harmless(sign: str) -> bool:
    """Printable, or one of the spaces: of these, Python counts only the plain space as printable."""
    return sign.isprintable() or unicodedata.category(sign) == "Zs"


def _json_escape(sign: str) -> str:
    number = ord(sign)
    if number <= 0xFFFF:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
