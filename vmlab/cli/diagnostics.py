"""Words for people go to standard error, and every way to end becomes an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

import click

from vmlab.model.errors import ExitCode, ScenarioError, VmlabError

_ENDED_WITHOUT_READER = 141
"""As a shell shows a program that SIGPIPE ended."""


def say(text: str) -> None:
    """One line, or several, for people; a closed standard error is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def run_and_report(command: Callable[[], object]) -> int:
    """Run a command; its exit code, after one clear line where it failed.

    An error that no one foresaw keeps its traceback: it is a defect of the program, not of its use.
    """
    try:
        result = command()
    except VmlabError as error:
        # A scenario's errors begin with file, line and column, as editors and compilers have it.
        say(str(error) if isinstance(error, ScenarioError) else f"vmlab: {error}")
        return int(error.exit_code)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        say(f"vmlab: {error.format_message().rstrip('.')}{_hint(error)}")
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        say("vmlab: interrupted")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        return _ENDED_WITHOUT_READER
    return result if isinstance(result, int) else int(ExitCode.PASSED)


def _hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see `{context.command_path} --help`)" if context is not None else ""


def _forget_output() -> None:
    """Point standard output at nothing, so that the interpreter's own flush at its end fails no more."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
