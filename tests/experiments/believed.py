"""What a reader of each publication should believe today: three sentences, each with the answers that it rests on.

They stand in ``believed.toml`` by the publication's title. A sentence that names a claim says which answer it has;
where the page has another one, the sentence is out of date, and a test fails.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SENTENCES = 3
_FILE = Path(__file__).with_name("believed.toml")


@dataclass(frozen=True, slots=True)
class Ground:
    """The answer that a sentence takes a claim of a scenario to have: a word of the page's table of counts."""

    scenario: str
    claim: str
    answer: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence; without grounds it rests on what is printed alone."""

    say: str
    rests_on: tuple[Ground, ...]


def believed() -> dict[str, tuple[Sentence, ...]]:
    """The sentences by the title of their publication."""
    found: Mapping[str, list[dict[str, object]]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {title: tuple(map(_sentence, those)) for title, those in found.items()}


def _sentence(written: Mapping[str, object]) -> Sentence:
    grounds = written.get("rests_on", [])
    assert isinstance(grounds, list)
    return Sentence(str(written["say"]), tuple(Ground(**one) for one in grounds))
