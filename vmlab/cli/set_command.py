"""`vmlab set`: changes a run while it goes on."""

from __future__ import annotations

from typing import Any

import click

from vmlab.cli.output import write_text
from vmlab.lab.asking import ask_for, ask_for_now
from vmlab.lab.folder import RunFolder
from vmlab.model.axes import axes_words
from vmlab.model.errors import UsageError
from vmlab.report.words import plural, switch_words
from vmlab.store.runs import resolve_run

_ORIGIN = "vmlab set"
_KNOWN = ("cache", "tiles")


@click.command("set")
@click.argument("run")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@click.option("--now", is_flag=True, help="Switch the guests that run: cache=none or cache=writeback.")
def set_command(run: str, changes: tuple[str, ...], now: bool) -> None:
    """Change RUN, which goes on: `cache=MODE` or `tiles=COUNT` of the cells to come.

    With --now the disks of the running guests are switched between the cache modes none and writeback. The cell is a
    reading of neither then, and counts for nothing.
    """
    wanted = dict(map(_change, changes))
    if now and wanted.keys() != {"cache"}:
        other = " and ".join(sorted(wanted.keys() - {"cache"}))
        raise UsageError(f"{other} cannot be changed while guests run; --now is for the cache mode alone")
    path = resolve_run(run).parent
    folder = RunFolder(path.name, path)
    write_text(_now(folder, wanted) if now else _to_come(folder, wanted))


def _change(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise UsageError(f"{text!r} is no change; say NAME=VALUE, such as cache=none")
    return name, int(value) if name == "tiles" and value.isdecimal() else value


def _to_come(folder: RunFolder, wanted: dict[str, Any]) -> str:
    if unknown := sorted(wanted.keys() - set(_KNOWN)):
        raise UsageError(f"the cells to come cannot be given another {', '.join(unknown)}; {' and '.join(_KNOWN)} can")
    cells = ask_for(folder, _ORIGIN, wanted)["cells"]
    following = f", the next with {axes_words(cells[0]['axes'])}" if cells else ""
    return f"{plural(len(cells), 'cell')} to come{following}; the running cell stays as it is"


def _now(folder: RunFolder, wanted: dict[str, Any]) -> str:
    done = ask_for_now(folder, _ORIGIN, wanted)
    told = switch_words(
        done["before"], done["after"], done["pauses_ms"], done["drained_seconds"], done["drained_bytes"]
    )
    return f"cell {done['cell']}: {told}; the cell counts for nothing"
