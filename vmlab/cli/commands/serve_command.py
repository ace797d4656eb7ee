"""`vmlab serve`: the console in a browser."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from vmlab.cli.output import write_text
from vmlab.model.errors import ExitCode, RefusedError
from vmlab.system.packages import extra_command
from vmlab.system.terminal import say

_SERVED = "vmlab.tui.served"
_PACKAGES = ("aiohttp", "textual_serve")


def port_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--port``, which every command that serves has."""
    return click.option(
        "--port", type=click.IntRange(0, 65535), default=8640, show_default=True, help="Port; 0 takes a free one."
    )(command)


@click.command()
@port_option
@click.option("--control", is_flag=True, help="Let pages start, change and stop runs; else they only watch.")
def serve(port: int, control: bool) -> ExitCode:
    """Open the console in a browser on this host.

    Prints the address, which has a random token; a request without it is refused. Listens on 127.0.0.1 alone: from
    another machine, forward the port (`ssh -L 8640:127.0.0.1:8640 HOST`). Ctrl-C ends it.
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
