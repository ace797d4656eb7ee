"""The command line: which commands there are, and where each lives.

A command's module is imported when the command is used or asked for its own help, so that ``vmlab --help`` loads
nothing but this table. This is the one place where imports happen late.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass

import click

from vmlab import __version__
from vmlab.cli.diagnostics import run_and_report
from vmlab.model.errors import RefusedError


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives, as ``module:function``, and its line in ``vmlab --help``."""

    target: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "run": Entry("vmlab.cli.run_commands:run", "Run a scenario and print its figures side by side."),
    "attach": Entry("vmlab.cli.run_commands:attach", "Watch a run that is under way."),
    "stop": Entry("vmlab.cli.run_commands:stop", "Stop a run; what was measured is kept."),
    "ls": Entry("vmlab.cli.read_commands:ls", "List runs, or the shipped scenarios."),
    "show": Entry("vmlab.cli.read_commands:show", "Show what a run measured."),
    "compare": Entry("vmlab.cli.read_commands:compare", "Set runs side by side."),
    "replay": Entry("vmlab.cli.console_words:replay", "Play a recorded run back in the console."),
    "top": Entry("vmlab.cli.top_command:top", "Watch this host live."),
    "plan": Entry("vmlab.cli.plan_commands:plan", "Tell what would run, how long, with how much RAM and disk."),
    "validate": Entry("vmlab.cli.plan_commands:validate", "Check scenarios and start nothing."),
    "schema": Entry("vmlab.cli.plan_commands:schema", "Print the JSON Schema of scenarios, for editors."),
    "image": Entry("vmlab.cli.image_commands:image", "Build, list or remove the guests' image."),
    "snapshot": Entry("vmlab.cli.snapshot_commands:snapshot", "List or remove the frozen guests that runs start from."),
    "clean": Entry("vmlab.cli.upkeep_commands:clean", "Clear what runs that died left behind."),
    "doctor": Entry("vmlab.cli.upkeep_commands:doctor", "Check what runs need, and say what mends it."),
}


class LateGroup(click.Group):
    """A group that knows its commands by name and loads one when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command. Raises RefusedError for one that this version lists and does not hold."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module_name, _, function = entry.target.partition(":")
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name:
                raise
            raise RefusedError(f"`vmlab {cmd_name}` is not part of this version") from None
        command: click.Command = getattr(module, function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the nearest command named where there is no such one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0][:40], COMMANDS, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"there is no command {args[0][:40]!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="vmlab", message="%(prog)s %(version)s")
def cli() -> None:
    """A test lab for this Linux host: real guests load it the way consolidation does, and the figures hold up.

    Without a command the console opens, with --no-mouse and --theme NAME as its options.

    SCENARIO is a path, or the name of a shipped scenario such as tile.
    """


def command_line(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    return run_and_report(lambda: _invoke(arguments))


def _invoke(arguments: list[str]) -> object:
    """Parse and call. click's own `main` would turn a closed pipe into exit code 1, which means a failed workload."""
    with cli.make_context("vmlab", list(arguments)) as context:
        return cli.invoke(context)
