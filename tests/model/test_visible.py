"""What a terminal would obey is shown instead, in every form that it may come in."""

from __future__ import annotations

import json
import sys
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

import pytest

from vmlab.model.visible import visible, visible_json, visible_line, visible_values

HOSTILE = {
    "CSI": ("\x1b[2J", "\\x1b[2J"),
    "OSC with BEL": ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    "OSC with ST": ("\x1b]52;c;Zm9v\x1b\\", "\\x1b]52;c;Zm9v\\x1b\\"),
    "carriage return": ("good\rbad", "good\\rbad"),
    "backspace": ("a\b", "a\\x08"),
    "NUL": ("\0", "\\x00"),
    "DEL": ("\x7f", "\\x7f"),
    "C1 CSI": ("\x9b2J", "\\u009b2J"),
    "C1 OSC": ("\x9d0;t\x9c", "\\u009d0;t\\u009c"),
    "NEL": ("\x85", "\\u0085"),
    "raw byte CSI": (b"\x9b2J".decode("utf-8", "surrogateescape"), "\\x9b2J"),
    "lone surrogate": ("\ud800", "\\ud800"),
    "right-to-left override": ("\u202egnp", "\\u202egnp"),
    "isolates": ("\u2066\u2067\u2068\u2069", "\\u2066\\u2067\\u2068\\u2069"),
    "marks": ("\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"),
    "zero width": ("\u200b\u200c\u200d\u2060", "\\u200b\\u200c\\u200d\\u2060"),
    "byte order mark": ("\ufeff", "\\ufeff"),
    "separators": ("\u2028\u2029", "\\u2028\\u2029"),
    "tags": ("\U000e0041", "\\U000e0041"),
}
PLAIN = "naïve ± 95 % · ✓ ━ ⣿ 日本語 \N{NO-BREAK SPACE}x 🙂"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_terminal_gets_nothing_to_obey(name: str) -> None:
    text, shown = HOSTILE[name]
    assert visible(text) == visible_line(text) == shown
    assert shown.isascii() and shown.isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_json_keeps_its_value(name: str) -> None:
    text, _ = HOSTILE[name]
    written = visible_json(json.dumps({"text": text + PLAIN}, ensure_ascii=False, indent=1))
    assert json.loads(written) == {"text": text + PLAIN}
    assert all(sign == "\n" or unicodedata.category(sign)[0] not in "C" for sign in written)
    written.encode()


def test_lines_stay_lines_and_fields_stay_on_one() -> None:
    assert visible("a\n\tb\n") == "a\n\tb\n"
    assert visible_line("a\n\tb\n") == "a\\n\\tb\\n"


def test_what_people_write_stays_as_it_is() -> None:
    assert visible(PLAIN) == visible_line(PLAIN) == PLAIN
    assert visible_json(PLAIN) == PLAIN


def test_no_character_of_a_harmful_category_passes() -> None:
    harmful = [
        chr(n) for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]
    shown = visible_line("".join(harmful))
    assert shown.isascii() and shown.isprintable()


class _Word(StrEnum):
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    more: dict[str, object]


def test_every_text_of_a_value_is_reached() -> None:
    part = _Part("a\x1b", {"k\n": ["x\x9b", (1, 2.5, None)], "word": _Word.GOOD})
    shown = visible_values(part)
    assert shown == _Part("a\\x1b", {"k\\n": ["x\\u009b", (1, 2.5, None)], "word": _Word.GOOD})
    assert shown.more["word"] is _Word.GOOD
