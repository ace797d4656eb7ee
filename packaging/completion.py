#!/usr/bin/env python3
"""Prints what the shell's completion knows, for vmlab/cli/completion.json.

The options of each command come from the commands, axes and metrics from the shipped scenarios.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from vmlab.cli.main import COMMANDS
from vmlab.plan.scenario_file.loading import load, shipped_names
from vmlab.report.exports.export_format import format_names
from vmlab.workloads.registry import kinds

_VALUES = {
    "scenario": "scenario",
    "scenarios": "scenario",
    "run": "run",
    "runs": "run",
    "RUN": "run",
    "CONDITION": "metric",
    "METRIC": "metric",
    "PATH=VALUE": "change",
    "words": "change",
    "file": "file",
    "source": "file",
    "PATH": "file",
    "FILE": "file",
}
"""What a value is, by the name of an argument or what the help calls an option's value."""
_WORDS = ["skip", "planned", "end"]


def described(command: click.Command) -> dict[str, Any]:
    """The options and arguments of a command, and its commands."""
    options = [one for one in command.params if isinstance(one, click.Option)]
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    return {
        "help": (command.help or "").partition("\n\n")[0].replace("\n", " "),
        "options": [
            {
                "names": [*one.opts, *one.secondary_opts],
                "flag": one.is_flag,
                "multiple": one.multiple,
                "help": one.help or "",
                **_value(one),
            }
            for one in options
        ],
        "arguments": [
            {"name": one.name, "nargs": one.nargs, "value": _VALUES.get(one.name or "", "")} for one in arguments
        ],
        "commands": {
            name: described(inner)
            for name, inner in (command.commands.items() if isinstance(command, click.Group) else ())
        },
    }


def _value(option: click.Option) -> dict[str, Any]:
    choices = list(option.type.choices) if isinstance(option.type, click.Choice) else []
    if choices == format_names():
        # Other packages may add to them.
        return {"choices": [], "value": "format"}
    value = "file" if isinstance(option.type, click.Path) else _VALUES.get(option.metavar or "", "")
    return {"choices": choices, "value": value}


def _of_scenario(name: str) -> dict[str, Any]:
    scenario = load(name).scenario
    return {
        "axes": {name: [str(value) for value in axis.values or axis.points] for name, axis in scenario.axes.items()},
        "metrics": {workload: list(kinds()[one.kind].metrics) for workload, one in scenario.workloads.items()},
    }


def table() -> str:
    """The text of the file."""
    whole = {
        "commands": {name: described(entry.load()) for name, entry in COMMANDS.items()},
        "scenarios": {name: _of_scenario(name) for name in shipped_names()},
        "words": _WORDS,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
