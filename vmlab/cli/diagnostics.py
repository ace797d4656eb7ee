"""Writes messages to standard error, and gives every way to end its exit code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from vmlab.cli.interrupts import Terminated
from vmlab.cli.output import OutputLost
from vmlab.model.errors import ExitCode, ScenarioError, VmlabError, unusable
from vmlab.model.visible import cut, visible_line
from vmlab.system.terminal import say, words_of_exit

_LONGEST = 401
"""Of click's messages, which repeat arguments of any length."""
_NO_ARGUMENTS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""Before 8.2, as Debian 12 and 13 have it, click prints the help itself and raises nothing."""
Option = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What gives a command an option."""
__all__ = ["run_and_report", "say"]


def run_and_report(command: Callable[[], object]) -> int:
    """Run a command; its exit code, after one clear line where it failed.

    An unexpected error keeps its traceback: it is a defect of the program, not a wrong use.
    """
    try:
        result = command()
    except OutputLost as error:
        return _output_lost(error)
    except VmlabError as error:
        # A scenario's errors begin with file, line and column, as editors and compilers have it.
        before = "" if isinstance(error, ScenarioError) else "vmlab: "
        for line in error.lines():
            say(f"{before}{visible_line(line)}")
        return int(error.exit_code)
    except click.exceptions.Exit as end:
        return end.exit_code
    except _NO_ARGUMENTS as error:
        say(error.format_message())
        return int(ExitCode.USAGE)
    except click.ClickException as error:
        say(f"vmlab: {visible_line(cut(_words(error), _LONGEST))}{_hint(error)}")
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _stopped(ExitCode.INTERRUPTED)
    except Terminated as end:
        return _stopped(end.exit_code)
    except OSError as error:
        refused = unusable(error)
        say(f"vmlab: {visible_line(str(refused))}")
        return int(refused.exit_code)
    return result if isinstance(result, int) else int(ExitCode.PASSED)


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """The callback of an option whose value `parse` reads; its ValueError becomes a BadParameter with that value."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{(value or '')[:40]!r} {error}", ctx, param) from None

    return callback


def with_options(options: Sequence[Option], name: str, made: Callable[..., object], names: Iterable[str]) -> Option:
    """Give a command `options`; it is called with what `made` makes of those called `names`, under one `name`."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def called(*args: Any, **values: Any) -> Any:
            own = made(**{one: values.pop(one) for one in names if one in values})
            return command(*args, **{name: own}, **values)

        found: Callable[..., Any] = called
        for option in reversed(options):
            found = option(found)
        return found

    return decorated


def _stopped(code: ExitCode) -> int:
    say(words_of_exit(code))
    return int(code)


def _words(error: click.ClickException) -> str:
    """Click's message, which calls a number within bounds an integer range."""
    return error.format_message().rstrip(".").replace("is not a valid integer range", "is not a whole number")


def _hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see `{context.command_path} --help`)" if context is not None else ""


def _output_lost(error: OutputLost) -> int:
    if not error.quiet:
        say(f"vmlab: {visible_line(str(error))}")
    return error.code
