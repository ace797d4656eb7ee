"""`vmlab serve`, and the words that open the console, which `vmlab.__main__` handles before any command."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Sequence

import click

from vmlab.cli.output import page_width, write_text
from vmlab.model.errors import ExitCode, RefusedError, UsageError
from vmlab.system.packages import extra_command
from vmlab.system.terminal import say

_SERVED = "vmlab.tui.served"
_PACKAGES = ("aiohttp", "textual_serve")


_port = click.option(
    "--port", type=click.IntRange(0, 65535), default=8640, show_default=True, help="Port; 0 takes a free one."
)


@click.command()
@_port
@click.option("--control", is_flag=True, help="Let pages start, change and stop runs; else they only watch.")
def serve(port: int, control: bool) -> ExitCode:
    """Open the console in a browser on this host.

    Prints the address, which has a random token; requests without this token are refused. Listens on 127.0.0.1 alone:
    from another machine, forward the port (`ssh -L 8640:127.0.0.1:8640 HOST`). Ctrl-C ends it.
    """
    return serve_console(["--control"] if control else [], "vmlab", port)


def serve_console(words: Sequence[str], title: str, port: int) -> ExitCode:
    """Serve the console that `words` open, until a signal comes; its exit code.

    Raises RefusedError where a package is missing, or the port cannot be used.
    """
    try:
        from vmlab.cli.serving import server
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        needed = error.name.replace("_", "-")
        remedy = shlex.join(extra_command("serve"))
        raise RefusedError(f"a console in a browser needs {needed}", remedy=remedy) from None

    async def run() -> ExitCode:
        served = server.ConsoleServer([sys.executable, "-m", _SERVED, *words], title)
        runner, taken = await server.listen(served, port)
        try:
            write_text(f"http://{server.ADDRESS}:{taken}/{served.token}/")
            changes = "pages may change runs" if "--control" in words else "pages only watch"
            say(f"vmlab: open this address in a browser on this host; {changes}; Ctrl-C ends it")
            return await server.until_stopped()
        finally:
            await runner.cleanup()

    return asyncio.run(run())


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
@click.option("--list", "as_list", is_flag=True, help="Print the steps as text.")
@click.option("--serve", is_flag=True, help="Play it in a browser, as `vmlab serve` shows the console.")
@_port
@_no_mouse
@_theme
def demo(as_list: bool, serve: bool, port: int, no_mouse: bool, theme: str | None) -> ExitCode:
    """Play the recording that comes with the program in the console, step by step.

    It needs no hypervisor, no root and no network, and starts nothing. N shows the next step, P the previous one.
    """
    if serve and not as_list:
        return serve_console(["demo"], "vmlab demo", port)
    if not as_list or serve:
        raise UsageError("`vmlab demo` takes --list, --serve, or --no-mouse and --theme NAME")
    # Imported late: the help needs none of it.
    from vmlab.report.demo.chapters import chapters_text, load_demo

    write_text(chapters_text(load_demo(), page_width()))
    return ExitCode.PASSED
