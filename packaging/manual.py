#!/usr/bin/env python3
"""Prints reference pages as Markdown: ``packaging/manual.py vmlab.1`` or ``vmlab-scenario.5``.

Each is made of what the program itself says: the help of its commands, and the JSON Schema of scenarios. The pages are
turned into manual pages by go-md2man, whose header is the first line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from vmlab import __version__
from vmlab.cli.main import COMMANDS, cli
from vmlab.model.errors import ExitCode
from vmlab.plan.scenario_file.schema import scenario_schema

_MEANINGS = {
    ExitCode.PASSED: "passed",
    ExitCode.FAILED: "a workload failed, or a condition of --fail-if or a target with --targets was missed",
    ExitCode.USAGE: "the command line or the scenario is wrong; nothing was started",
    ExitCode.REFUSED: "this host cannot do it; nothing was started",
    ExitCode.INVALID: "measured, but invalid, or a condition of --fail-if is undecided",
    ExitCode.CLEANUP_INCOMPLETE: "something of a run is left on the host; vmlab clean",
    ExitCode.INTERRUPTED: "ended by Ctrl-C",
    ExitCode.READER_GONE: "output pipe closed",
    ExitCode.TERMINATED: "ended by SIGTERM",
}


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.replace("\b", "").split("\n\n"):
        yield " ".join(paragraph.split())
        yield ""


def _command(name: str, command: click.Command, level: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f"{level} {name}"
    yield f"**{name}** {' '.join(command.collect_usage_pieces(context))}".replace("[", "\\[").replace("<", "\\<")
    yield ""
    yield from _paragraphs(command.help or "")
    for option in command.params:
        if isinstance(option, click.Option):
            names, what = option.get_help_record(context) or ("", "")
            yield f"**{names}**"
            yield f": {what}"
            yield ""
    if isinstance(command, click.Group):
        for inner, one in command.commands.items():
            yield from _command(f"{name} {inner}", one, level)


def command_line() -> Iterator[str]:
    """vmlab(1)."""
    yield f'% vmlab 1 "" "vmlab {__version__}" "User Commands"'
    yield "# NAME"
    yield "vmlab - test lab for Linux hypervisors in a terminal"
    yield ""
    yield "# SYNOPSIS"
    yield "**vmlab** [*COMMAND*] [*OPTIONS*] [*ARGUMENTS*]"
    yield ""
    yield "# DESCRIPTION"
    yield from _paragraphs(cli.help or "")
    yield "# COMMANDS"
    for name, entry in COMMANDS.items():
        yield from _command(f"vmlab {name}", entry.load(), "##")
    yield "# EXIT STATUS"
    for code, meaning in _MEANINGS.items():
        yield f"**{int(code)}**"
        yield f": {meaning}"
        yield ""
    yield "# FILES"
    for place, what in (
        ("~/.local/state/vmlab", "runs and their names; $XDG_STATE_HOME moves it"),
        ("~/.cache/vmlab", "guest images and snapshots; $XDG_CACHE_HOME moves it"),
        ("/run/vmlab", "sockets of runs under way; $VMLAB_RUNTIME_DIR moves it"),
    ):
        yield f"*{place}*"
        yield f": {what}"
        yield ""
    yield "# SEE ALSO"
    yield "**vmlab-scenario**(5), **libvirtd**(8), **qemu-system-x86_64**(1)"


def _values(described: Mapping[str, Any]) -> str:
    """What a key may be, in a few words."""
    if "const" in described:
        return f"`{described['const']}`"
    if "enum" in described:
        return ", ".join(f"`{one}`" for one in described["enum"])
    if "$ref" in described:
        return str(described["$ref"].rpartition("/")[2])
    if choices := described.get("anyOf") or described.get("oneOf"):
        return " or ".join(dict.fromkeys(words for one in choices if (words := _values(one)) != "null"))
    kinds = described.get("type", "")
    kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
    if kind == "array":
        return f"list of {_values(described.get('items', {})) or 'values'}"
    for one in described.get("patternProperties", {}).values():
        return f"map of names to {_values(one)}"
    if kind == "object" and isinstance(one := described.get("additionalProperties"), dict) and _values(one) != "object":
        return f"map of names to {_values(one)}"
    limits = [
        f"{sign} {described[key]}"
        for key, sign in (("minimum", "at least"), ("maximum", "at most"))
        if key in described
    ]
    return " ".join([kind, *limits])


def _keys(described: Mapping[str, Any]) -> Iterator[str]:
    required = described.get("required", ())
    for name, one in described.get("properties", {}).items():
        default = one.get("default")
        shown = json.dumps(default) if isinstance(default, bool) else default
        needed = "required" if name in required else f"default {shown}" if shown and not isinstance(shown, dict) else ""
        yield f"**{name}** {_values(one)}" + (f" ({needed})" if needed else "")
        yield f": {' '.join(one.get('description', one.get('title', '')).split())}"
        yield ""


def language() -> Iterator[str]:
    """vmlab-scenario(5)."""
    schema = scenario_schema()
    yield f'% vmlab-scenario 5 "" "vmlab {__version__}" "File Formats"'
    yield "# NAME"
    yield "vmlab-scenario - the file that says what vmlab measures"
    yield ""
    yield "# DESCRIPTION"
    yield "A scenario is a YAML file. `vmlab validate` checks one, `vmlab plan` shows what it would run."
    yield ""
    yield "# KEYS"
    yield from _keys(schema)
    for name, described in schema["$defs"].items():
        yield f"# {name.replace('workload-', 'WORKLOAD ').upper()}"
        yield from _paragraphs(described.get("description", ""))
        yield from _keys(described)
    yield "# SEE ALSO"
    yield "**vmlab**(1)"


PAGES: dict[str, Callable[[], Iterator[str]]] = {"vmlab.1": command_line, "vmlab-scenario.5": language}

if __name__ == "__main__":
    sys.stdout.write("\n".join(PAGES[sys.argv[1]]()) + "\n")
