"""Words that open the console. `vmlab.__main__` handles them before any command; here they are listed for the help."""

from __future__ import annotations

import click

from vmlab.model.errors import UsageError


@click.command()
@click.argument("run", default="last")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, for selecting text.")
@click.option("--theme", metavar="NAME", help="Colours, by one of Textual's names.")
def replay(run: str, no_mouse: bool, theme: str | None) -> None:
    """Open the console on a recorded run and play it back. RUN is an id, the start of one, or `last`."""
    # The console was not opened, so the other words on the command line were wrong.
    raise UsageError("`vmlab replay [RUN]` takes one run, --no-mouse and --theme NAME")
