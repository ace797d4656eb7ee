"""How the console is asked for on the command line; loads nothing that draws."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

NO_TERMINAL = "vmlab: the console needs a terminal; `vmlab --help` lists the commands"


class ConsoleOptions(NamedTuple):
    """How the console is opened.

    `mouse` False leaves the mouse to the terminal, for selecting text. `theme` is one of Textual's names. `replay` is
    the run to play back at once, as `store.runs.resolve_run` takes it.
    """

    mouse: bool = True
    theme: str | None = None
    replay: str | None = None


def console_options(arguments: Sequence[str]) -> ConsoleOptions | None:
    """The options when `arguments` ask for the console, None when they are a command's.

    ``[]``, ``--no-mouse`` and ``--theme NAME`` open it; ``replay RUN`` opens it on a recording.
    """
    options, rest = ConsoleOptions(), list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--no-mouse":
            options = options._replace(mouse=False)
        elif word == "--theme" and rest:
            options = options._replace(theme=rest.pop(0))
        elif word == "replay" and options.replay is None and "--help" not in rest:
            run = rest.pop(0) if rest and not rest[0].startswith("-") else "last"
            options = options._replace(replay=run)
        else:
            return None
    return options


def has_terminal() -> bool:
    """Whether there is a terminal that the console can draw on."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
