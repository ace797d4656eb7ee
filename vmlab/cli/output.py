"""The only writer to standard output: what commands were asked for, as text or as versioned JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping


def write_text(text: str) -> None:
    """Write lines for people, with one line break at the end."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


def write_json(document: Mapping[str, object]) -> None:
    """Write a JSON document on lines of its own; ``schema`` in it names its version, such as ``vmlab.run/1``.

    Raises ValueError for a figure that is not finite, which JSON cannot hold.
    """
    write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def write_json_line(document: Mapping[str, object]) -> None:
    """Write a JSON document as one flushed line, for output that goes on."""
    write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
