"""Chooses the console or the command line; nothing else."""

from __future__ import annotations

import gc
import sys
from importlib import import_module

from vmlab.tui.options import NO_TERMINAL, ConsoleOptions, console_options, has_terminal


def main() -> None:
    """The program ``vmlab``."""
    arguments = sys.argv[1:]
    options = console_options(arguments)
    # Only one of the two is loaded: each would double the other's time to start.
    sys.exit(import_module("vmlab.cli.main").command_line(arguments) if options is None else console(options))


def console(options: ConsoleOptions) -> int:
    """Open the console; its exit code. One line on standard error where there is no terminal to draw on."""
    if not has_terminal():
        sys.stderr.write(NO_TERMINAL)
        return 2
    # Nothing that start-up makes is garbage; looking for some costs a tenth of the time to the first picture. The
    # console turns it on again when that stands.
    gc.disable()
    opened: int = import_module("vmlab.tui.app").main(options)
    return opened


if __name__ == "__main__":
    main()
