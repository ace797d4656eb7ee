"""The command line: which commands there are, and where each lives.

A command's module is imported when the command is used or asked for its own help, so that ``vmlab --help`` loads
nothing but this table. Here, in the commands that write files (`export`, `report`) or read stores (`ls`, `show`,
`compare`), and where the console is chosen, imports happen late.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from vmlab import __version__
from vmlab.cli.diagnostics import run_and_report, say
from vmlab.cli.interrupts import obey
from vmlab.cli.output import write_text
from vmlab.model.visible import visible_line
from vmlab.system.entry_points import broken


class CommandEntry(NamedTuple):
    """The place of a command below `vmlab.cli.commands`, as ``MODULE.NAME``, and its line in ``vmlab --help``."""

    place: str
    summary: str

    def load(self) -> click.Command:
        """The command itself."""
        module, _, name = self.place.rpartition(".")
        command: click.Command = getattr(import_module(f"vmlab.cli.commands.{module}"), name)
        return command


COMMANDS: dict[str, CommandEntry] = {
    "run": CommandEntry("run_commands.run", "Run a scenario and print the results side by side."),
    "scale": CommandEntry("scale_command.scale", "Find out how many tiles this host carries."),
    "tune": CommandEntry("tune_command.tune", "Find the best settings of a guest's disk on this host."),
    "attach": CommandEntry("run_commands.attach", "Follow a run in progress."),
    "stop": CommandEntry("run_commands.stop", "Stop a run; its measurements are kept."),
    "resume": CommandEntry("run_commands.resume", "Continue a run that was stopped or killed."),
    "set": CommandEntry("set_command.set_command", "Change a run in progress: coming cells or running guests."),
    "ls": CommandEntry("list_command.ls", "List runs, or the shipped scenarios."),
    "show": CommandEntry("read_commands.show", "Show what a run measured."),
    "compare": CommandEntry("read_commands.compare", "Compare runs."),
    "gate": CommandEntry("gate_command.gate", "Run a scenario, and fail if it is worse than on recent nights."),
    "tag": CommandEntry("upkeep_commands.tag", "Name a run, such as baseline; list or remove names."),
    "note": CommandEntry("upkeep_commands.note", "Describe a run in your own words."),
    "report": CommandEntry("export_commands.report", "Write a report of runs to one HTML or Markdown file."),
    "export": CommandEntry("export_commands.export", "Export runs to other formats or to another machine."),
    "import": CommandEntry("export_commands.import_run", "Import a run that another machine exported."),
    "reparse": CommandEntry("export_commands.reparse", "Parse the raw output of a run again."),
    "replay": CommandEntry("serve_command.replay", "Play a recorded run back in the console."),
    "demo": CommandEntry("serve_command.demo", "Play the built-in recording; starts nothing."),
    "serve": CommandEntry("serve_command.serve", "Show the console in a browser on this host."),
    "top": CommandEntry("top_command.top", "Watch this host live."),
    "record": CommandEntry("record_command.record", "Record this host and its own guests."),
    "advise": CommandEntry("record_command.advise", "Say where a recording's cache modes matter, and why."),
    "scenario": CommandEntry("plan_commands.scenario", "Write a scenario with a guest like one of your own."),
    "plan": CommandEntry("plan_commands.plan", "Show what would run, for how long, with how much RAM and disk."),
    "validate": CommandEntry("plan_commands.validate", "Check scenarios; starts nothing."),
    "schema": CommandEntry("plan_commands.schema", "Print the JSON Schema of scenarios, for editors."),
    "image": CommandEntry("image_commands.image", "Build, add, move, list or remove guest images."),
    "snapshot": CommandEntry("image_commands.snapshot", "List or remove guest snapshots."),
    "hosts": CommandEntry("hosts_commands.hosts", "Check the hosts of a fleet, or resume its run."),
    "rm": CommandEntry("upkeep_commands.rm", "Delete runs."),
    "clean": CommandEntry("upkeep_commands.clean", "Clean up after crashed runs."),
    "plugins": CommandEntry("plan_commands.plugins", "List workloads, formats and metrics, by package."),
    "doctor": CommandEntry("doctor_command.doctor", "Check the requirements of runs, and install what is missing."),
    "selftest": CommandEntry("selftest_command.selftest", "Check on a real guest that everything works here."),
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
        if ctx.resilient_parsing:
            from vmlab.cli import completion

            return completion.command(cmd_name)
        command = entry.load()
        # From here on files may be open, which must be closed. Until now a signal ended the program at once.
        obey()
        _tell_help_ourselves(command, ctx)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of commands, without loading any."""
        names = [
            CompletionItem(name, help=one.summary) for name, one in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

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
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
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
    """Run one command; its exit code. What of another package was left out meanwhile is reported, a line each."""
    try:
        return run_and_report(lambda: _invoke(arguments))
    finally:
        for one in broken():
            say(f"vmlab: {visible_line(one.line)}")


def _invoke(arguments: list[str]) -> object:
    """Parse and call. click's own `main` would turn a closed pipe into exit code 1, which means a failed workload."""
    with cli.make_context("vmlab", list(arguments)) as context:
        return cli.invoke(context)
