"""The command line: which commands there are, and where each lives.

A command's module is imported when the command is used or asked for its own help, so that ``vmlab --help`` loads
nothing but this table. Here, in the commands that write files (`export`, `report`) or read stores (`ls`, `show`,
`compare`), and where the console is chosen, imports happen late.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import click

from vmlab import __version__
from vmlab.cli.diagnostics import run_and_report
from vmlab.cli.interrupts import obey
from vmlab.cli.output import write_text


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """What loads a command, and its line in ``vmlab --help``."""

    load: Callable[[], click.Command]
    summary: str


def _run() -> click.Command:
    from vmlab.cli.commands.run_commands import run

    return run


def _scale() -> click.Command:
    from vmlab.cli.commands.scale_command import scale

    return scale


def _attach() -> click.Command:
    from vmlab.cli.commands.run_commands import attach

    return attach


def _stop() -> click.Command:
    from vmlab.cli.commands.run_commands import stop

    return stop


def _set() -> click.Command:
    from vmlab.cli.commands.set_command import set_command

    return set_command


def _ls() -> click.Command:
    from vmlab.cli.commands.list_command import ls

    return ls


def _show() -> click.Command:
    from vmlab.cli.commands.read_commands import show

    return show


def _compare() -> click.Command:
    from vmlab.cli.commands.read_commands import compare

    return compare


def _tag() -> click.Command:
    from vmlab.cli.commands.tag_command import tag

    return tag


def _reparse() -> click.Command:
    from vmlab.cli.commands.reparse_command import reparse

    return reparse


def _report() -> click.Command:
    from vmlab.cli.commands.report_command import report

    return report


def _export() -> click.Command:
    from vmlab.cli.commands.export_commands import export

    return export


def _import() -> click.Command:
    from vmlab.cli.commands.export_commands import import_run

    return import_run


def _replay() -> click.Command:
    from vmlab.cli.console_words import replay

    return replay


def _demo() -> click.Command:
    from vmlab.cli.console_words import demo

    return demo


def _top() -> click.Command:
    from vmlab.cli.commands.top_command import top

    return top


def _plan() -> click.Command:
    from vmlab.cli.commands.plan_commands import plan

    return plan


def _validate() -> click.Command:
    from vmlab.cli.commands.plan_commands import validate

    return validate


def _schema() -> click.Command:
    from vmlab.cli.commands.plan_commands import schema

    return schema


def _image() -> click.Command:
    from vmlab.cli.commands.image_commands import image

    return image


def _snapshot() -> click.Command:
    from vmlab.cli.commands.snapshot_commands import snapshot

    return snapshot


def _rm() -> click.Command:
    from vmlab.cli.commands.upkeep_commands import rm

    return rm


def _clean() -> click.Command:
    from vmlab.cli.commands.upkeep_commands import clean

    return clean


def _doctor() -> click.Command:
    from vmlab.cli.commands.upkeep_commands import doctor

    return doctor


COMMANDS: dict[str, CommandEntry] = {
    "run": CommandEntry(_run, "Run a scenario and print the results side by side."),
    "scale": CommandEntry(_scale, "Find out how many tiles this host carries."),
    "attach": CommandEntry(_attach, "Follow a run in progress."),
    "stop": CommandEntry(_stop, "Stop a run; its measurements are kept."),
    "set": CommandEntry(_set, "Change a run in progress: coming cells or running guests."),
    "ls": CommandEntry(_ls, "List runs, or the shipped scenarios."),
    "show": CommandEntry(_show, "Show what a run measured."),
    "compare": CommandEntry(_compare, "Compare runs."),
    "tag": CommandEntry(_tag, "Name a run, such as baseline; list or remove names."),
    "report": CommandEntry(_report, "Write a report of runs to one HTML or Markdown file."),
    "export": CommandEntry(_export, "Export runs to other formats or to another machine."),
    "import": CommandEntry(_import, "Import a run that another machine exported."),
    "reparse": CommandEntry(_reparse, "Parse the raw output of a run again."),
    "replay": CommandEntry(_replay, "Play a recorded run back in the console."),
    "demo": CommandEntry(_demo, "Play the built-in recording; starts nothing."),
    "top": CommandEntry(_top, "Watch this host live."),
    "plan": CommandEntry(_plan, "Show what would run, for how long, with how much RAM and disk."),
    "validate": CommandEntry(_validate, "Check scenarios; starts nothing."),
    "schema": CommandEntry(_schema, "Print the JSON Schema of scenarios, for editors."),
    "image": CommandEntry(_image, "Build, add, list or remove guest images."),
    "snapshot": CommandEntry(_snapshot, "List or remove guest snapshots."),
    "rm": CommandEntry(_rm, "Delete runs."),
    "clean": CommandEntry(_clean, "Clean up after crashed runs."),
    "doctor": CommandEntry(_doctor, "Check the requirements of runs and how to meet them."),
}


def _tell_help_ourselves(command: click.Command, ctx: click.Context) -> None:
    """Make a command and its subcommands print their help through `output`, as all text; click would bypass it."""
    if (option := command.get_help_option(ctx)) is not None:
        option.callback = _show_help
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _tell_help_ourselves(inner, ctx)


def _show_help(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        write_text(ctx.get_help())
        ctx.exit()


def _show_version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        write_text(f"vmlab {__version__}")
        ctx.exit()


class LateGroup(click.Group):
    """A group that knows its commands by name and loads one when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command; None for one that does not exist."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = entry.load()
        # From here on files may be open, which must be closed. Until now a signal ended the program at once.
        obey()
        _tell_help_ourselves(command, ctx)
        return command

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option of ``vmlab`` itself."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, but for an unknown command the nearest one is named."""
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
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """Benchmark this Linux host as a hypervisor: real guests load it the way consolidation does.

    Without a command the console opens; it takes --no-mouse and --theme NAME.

    SCENARIO is a path, or the name of a shipped scenario such as tile.
    """


def command_line(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    return run_and_report(lambda: _invoke(arguments))


def _invoke(arguments: list[str]) -> object:
    """Parse and call. click's own `main` would turn a closed pipe into exit code 1, which means a failed workload."""
    with cli.make_context("vmlab", list(arguments)) as context:
        return cli.invoke(context)
