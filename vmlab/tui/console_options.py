"""How the console is asked for on the command line; loads nothing that draws."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

_NO_TERMINAL = "vmlab: the console needs a terminal; "


class ConsoleOptions(NamedTuple):
    """How the console is opened.

    `mouse` False disables mouse capture. `theme` is one of Textual's names. `replay` is
    the run to play back at once, as `store.runs.resolve_run` takes it; `demo` plays the recording of the program's own.
    `control` False lets it watch alone: it starts, changes and stops no run, and writes no file.
    """

    mouse: bool = True
    theme: str | None = None
    replay: str | None = None
    demo: bool = False
    control: bool = True


def console_options(arguments: Sequence[str]) -> ConsoleOptions | None:
    """The options when `arguments` ask for the console, None when they are a command's.

    ``[]``, ``--no-mouse`` and ``--theme NAME`` open it; ``replay RUN`` opens it on a recording, and
    ``demo`` on the one that comes with the program.
    """
    options, rest = ConsoleOptions(), list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--no-mouse":
            options = options._replace(mouse=False)
        elif word == "--theme" and rest:
            options = options._replace(theme=rest.pop(0))
        elif word == "demo" and options.replay is None and not options.demo:
            options = options._replace(demo=True)
        elif word == "replay" and options.replay is None and not options.demo and "--help" not in rest:
            run = rest.pop(0) if rest and not rest[0].startswith("-") else "last"
            options = options._replace(replay=run)
        else:
            return None
    return options


def no_terminal(options: ConsoleOptions) -> str:
    """The line that is said where there is no terminal, with what works without one."""
    instead = "`vmlab demo --list` prints its story" if options.demo else "`vmlab --help` lists the commands"
    return f"{_NO_TERMINAL}{instead}"


def has_terminal() -> bool:
    """Whether there is a terminal that the console can draw on."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
