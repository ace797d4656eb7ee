"""How long the demo takes, from its book alone: reading the recording too would take a second."""

from __future__ import annotations

import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent
BOOK = "chapters.toml"


def longest_seconds() -> float:
    """What all chapters and the ways between them take at most."""
    told = tomllib.loads((FOLDER / BOOK).read_text(encoding="utf-8"))
    return float(len(told["chapters"]) * (told["chapter_seconds"] + told["forward_seconds"]))
