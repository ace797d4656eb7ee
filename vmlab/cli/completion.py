"""Completion in the shell: of commands, options, scenarios, runs, names, cells' axes and metrics.

A shell waits for it at each press of Tab, so nothing of the commands is loaded: their options, and the axes and metrics
of shipped scenarios, are read from `completion.json`, which `packaging/completion.py` makes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from vmlab.model.places import runs_folder, shipped_scenarios, state_folder

TABLE = Path(__file__).with_name("completion.json")
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-(.+)-[0-9a-f]{4}")
_MOST_RUNS = 100


def command(name: str) -> click.Command:
    """A stand-in for a command, with its options and arguments, which runs nothing."""
    return _command(name, _table()["commands"][name])


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


def _command(name: str, described: Mapping[str, Any]) -> click.Command:
    params: list[click.Parameter] = [
        click.Option(
            one["names"],
            is_flag=one["flag"],
            multiple=one["multiple"],
            nargs=1,
            help=one["help"],
            type=click.Choice(one["choices"]) if one["choices"] else None,
            shell_complete=_COMPLETERS.get(one["value"]) if not one["choices"] else None,
        )
        for one in described["options"]
    ]
    params += [
        click.Argument([one["name"]], nargs=one["nargs"], required=False, shell_complete=_COMPLETERS.get(one["value"]))
        for one in described["arguments"]
    ]
    if described["commands"]:
        inner = {name: _command(name, one) for name, one in described["commands"].items()}
        return click.Group(name, inner, params=params, help=described["help"])
    return click.Command(name, params=params, help=described["help"])


def _scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = sorted(path.stem for path in shipped_scenarios().glob("*.yaml"))
    return [*_starting(names, incomplete), CompletionItem(incomplete, type="file")]


def _names_of_runs() -> list[str]:
    """``last``, users' names, and the newest runs; none where this user may not read them."""
    found = ["last"]
    for folder, most in ((state_folder() / "tags", None), (runs_folder(), _MOST_RUNS)):
        try:
            found += sorted(os.listdir(folder), reverse=True)[:most]  # noqa: PTH208
        except OSError:
            continue
    return found


def _runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    # Several runs on one side are parted by commas.
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in _names_of_runs() if name.startswith(last)]


def _of_scenarios(ctx: click.Context, what: str) -> dict[str, list[str]]:
    """Axes or metrics of the shipped scenario that the command line names, itself or by a run; else those of all."""
    words = [word for value in ctx.params.values() for word in (value if isinstance(value, tuple) else (value,))]
    names = [match[1] if (match := _ID.fullmatch(word)) else word for word in words if isinstance(word, str)]
    every = _table()["scenarios"]
    chosen = [every[name] for name in names if name in every] or every.values()
    found: dict[str, list[str]] = {}
    for one in chosen:
        for name, values in one[what].items():
            found.setdefault(name, [])
            found[name] += [value for value in values if value not in found[name]]
    return found


def _metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    found = _of_scenarios(ctx, "metrics")
    names = [f"{workload}.{metric}" for workload, metrics in found.items() for metric in metrics]
    return _starting([*found, *names], incomplete)


def _changes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Of ``NAME=VALUE``: axes, and the values of one."""
    axes = _of_scenarios(ctx, "axes")
    name, equals, _ = incomplete.partition("=")
    # What follows "=" is a word of its own for a shell that breaks words there, as bash does.
    whole = [f"{name}={value}" for value in axes.get(name, ())] if equals else [f"{axis}=" for axis in axes]
    words = _table()["words"] if param.name == "words" else []
    runs = _names_of_runs() if param.name == "words" else []
    return _starting([*whole, *words, *runs], incomplete)


def _starting(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Of `vmlab export`, those of other packages too."""
    from vmlab.system.entry_points import EXPORTS, entries

    return _starting(dict.fromkeys(entry.name for entry in entries(EXPORTS)), incomplete)


_COMPLETERS = {
    "scenario": _scenarios,
    "run": _runs,
    "metric": _metrics,
    "change": _changes,
    "file": _files,
    "format": _formats,
}
"""By what a value is; others complete nothing."""
