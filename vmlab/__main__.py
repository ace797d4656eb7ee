"""Chooses the console or the command line; nothing else."""

from __future__ import annotations

import gc
import os
import sys
import warnings

from vmlab.system.terminal import ON_A_TERMINAL, STOPPING, leave_at_once, open_streams, say
from vmlab.tui.console_options import ConsoleOptions, console_options, has_terminal, no_terminal

COMPLETION = "_VMLAB_COMPLETE"
"""Where a shell says that it asks for completion, as click's scripts do."""


def main() -> None:
    """The program ``vmlab``."""
    # What start-up makes is no garbage, and looking for some after each 700 objects costs a tenth of its time.
    gc.set_threshold(100_000)
    open_streams()
    if not sys.warnoptions:
        # Python's warnings are for who writes programs; on standard error users read lines of ours.
        warnings.simplefilter("ignore")
    # What is loaded now takes a while.
    leave_at_once()
    arguments = sys.argv[1:]
    if COMPLETION in os.environ:
        from vmlab.cli.main import cli

        cli.main(prog_name="vmlab", complete_var=COMPLETION)
    options = console_options(arguments)
    # Only one of the two is loaded: each would double the other's time to start.
    if options is None:
        from vmlab.cli.main import command_line

        code = command_line(arguments)
        # Python would look for garbage once more at its end, in all that was loaded: another tenth of a short command.
        gc.freeze()
        sys.exit(code)
    sys.exit(console(options))


def console(options: ConsoleOptions) -> int:
    """Open the console; its exit code. One line on standard error where there is no terminal to draw on."""
    if not has_terminal():
        say(no_terminal(options))
        return 2
    # Nothing that start-up makes is garbage; looking for some costs a tenth of the time to the first picture.
    # `Console.on_mount` turns the collection on again after it.
    gc.disable()
    # It owns no run and keeps no file open, so it leaves at once, and the terminal as it was.
    leave_at_once((*STOPPING, *ON_A_TERMINAL))
    from vmlab.tui import app

    return app.main(options)


if __name__ == "__main__":
    main()
