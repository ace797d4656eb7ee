"""Words that open the console. `vmlab.__main__` handles them before any command; here they are listed for the help."""

from __future__ import annotations

import click

from vmlab.cli.commands.serve_command import port_option, serve_console
from vmlab.cli.output import page_width, write_text
from vmlab.model.errors import ExitCode, UsageError

_no_mouse = click.option("--no-mouse", is_flag=True, help="Disable mouse capture.")
_theme = click.option("--theme", metavar="NAME", help="Textual theme.")


@click.command()
@click.argument("run", default="last")
@_no_mouse
@_theme
def replay(run: str, no_mouse: bool, theme: str | None) -> None:
    """Open the console on a recorded run and play it back. RUN is an id, the start of one, or `last`."""
    # The console was not opened, so the other words on the command line were wrong.
    raise UsageError("`vmlab replay [RUN]` takes one run, --no-mouse and --theme NAME")


@click.command()
@click.option("--list", "as_list", is_flag=True, help="Print the chapters as text.")
@click.option("--serve", is_flag=True, help="Play it in a browser, as `vmlab serve` shows the console.")
@port_option
@_no_mouse
@_theme
def demo(as_list: bool, serve: bool, port: int, no_mouse: bool, theme: str | None) -> ExitCode:
    """Play the recording that comes with the program in the console, chapter by chapter.

    It needs no hypervisor, no root and no network, and starts nothing. N goes to the next chapter, P to the one before.
    """
    if serve and not as_list:
        return serve_console(["demo"], "vmlab demo", port)
    if not as_list or serve:
        raise UsageError("`vmlab demo` takes --list, --serve, or --no-mouse and --theme NAME")
    # Imported late: the help needs none of it.
    from vmlab.report.demo.chapters import chapters_text, load_demo

    write_text(chapters_text(load_demo(), page_width()))
    return ExitCode.PASSED
