"""The only writer to standard output: the results of commands, as text or as versioned JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vmlab.model.errors import ExitCode, VmlabError
from vmlab.model.jsonable import jsonable
from vmlab.model.run import OF_HOST
from vmlab.model.visible import Control, visible_json
from vmlab.system.terminal import forget, is_unicode, put

if TYPE_CHECKING:
    from vmlab.analysis.shape import RunDocument

_STRIKE, _UNSTRUCK = Control("\x1b[9m"), Control("\x1b[29m")


class OutputLost(VmlabError):
    """Standard output is closed, full, or nobody reads it any more.

    Has its own exit code; `quiet` where the reader has closed the pipe, which is often intended and gives no message.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write to standard output: {error.strerror or error}")
        self.quiet = isinstance(error, BrokenPipeError)
        self.code = int(ExitCode.READER_GONE if self.quiet else self.exit_code)


def page_width() -> int:
    """How wide a page of text is: that of every terminal, and uncut where standard output is none."""
    # Imported late: `vmlab --help` prints no table.
    from vmlab.system.text_width import UNCUT, WIDTH

    return WIDTH if sys.stdout is not None and sys.stdout.isatty() else UNCUT


def run_text(document: RunDocument, name: str) -> str:
    """A run on one screen, as `run` and `show` print it; a recording of the host has a page of its own."""
    # Imported late: no other command prints a run.
    from vmlab.report.run.run_page import run_table
    from vmlab.report.run.run_screen import run_screen

    return run_table(document, page_width()) if document.run.size == OF_HOST else run_screen(document, name)


def write_text(text: str) -> None:
    """Write lines for people, with one line break at the end. Raises OutputLost, as all writers here."""
    write_parts(text if text.endswith("\n") else f"{text}\n")


def write_figures(text: str) -> None:
    """As `write_text`, for tables: on a terminal, figures of invalid cells are struck through."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        write_text(text)
        return
    # Imported late: `vmlab --help` has no figures.
    from vmlab.report.figures import struck_parts

    parts: list[str] = []
    for place, part in enumerate(struck_parts(text if text.endswith("\n") else f"{text}\n")):
        parts += [_STRIKE, part, _UNSTRUCK] if place % 2 else [part]
    write_parts(*parts)


def write_json(document: Mapping[str, object]) -> None:
    """Write a JSON document on lines of its own; ``schema`` in it names its version, such as ``vmlab.run/1``.

    Raises ValueError for a figure that is not finite, which JSON cannot hold.
    """
    _write_json(json.dumps(document, indent=2, ensure_ascii=not is_unicode(sys.stdout), allow_nan=False))


def write_json_line(document: Mapping[str, object]) -> None:
    """Write a JSON document as one flushed line, for output that goes on."""
    _write_json(json.dumps(document, separators=(",", ":"), ensure_ascii=not is_unicode(sys.stdout), allow_nan=False))


def write_found(found: object, text: Callable[[Any, int], str], *, as_json: bool) -> None:
    """Write what was found as its JSON document, or as the `text` that it is on a page of so many columns."""
    if as_json:
        write_json(jsonable(found))
    else:
        write_figures(text(found, page_width()))


def _write_json(text: str) -> None:
    write_parts(Control(visible_json(text)), "\n")


def write_parts(*parts: str) -> None:
    """Write `parts` one after the other; they may contain `Control` sequences for the terminal."""
    try:
        put(sys.stdout, *parts)
    except OSError as error:
        forget(sys.stdout)
        raise OutputLost(error) from error
