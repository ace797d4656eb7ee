"""`vmlab set`: changes a run while it goes on, and lists what is to come of it."""

from __future__ import annotations

from typing import Any

import click

from vmlab.cli.output import write_json, write_text
from vmlab.lab.commands.stopping import run_meant
from vmlab.lab.commands.verbs import WORDS, ChangeComing, ChangeRunning, ListComing, coming_document
from vmlab.model.errors import UsageError
from vmlab.report.listing import changed_words, coming_text
from vmlab.report.words import changed_now_words

_ORIGIN = "vmlab set"
_MOST_DIGITS = 9


@click.command("set")
@click.argument("words", nargs=-1, metavar="[RUN] [NAME=VALUE...|skip|planned|end]")
@click.option("--cell", type=int, metavar="N", help="Change only this coming cell; see --list.")
@click.option("--list", "as_list", is_flag=True, help="List the coming cells without changing them.")
@click.option("--json", "as_json", is_flag=True, help="With --list: print JSON.")
@click.option(
    "--now",
    is_flag=True,
    help="Change the running cell: cache=none|writeback, ksm=on|off; tiles=COUNT or end of a loop.",
)
def set_command(words: tuple[str, ...], cell: int | None, as_list: bool, as_json: bool, now: bool) -> None:
    """Change RUN, or the run in progress: `cache=MODE` or `tiles=COUNT` for all coming cells; `planned` undoes that.

    With --cell it changes one coming cell, skips it (`skip`) or restores it (`planned`); --list shows coming cells.

    With --now, the running guests' disks switch between the cache modes none and writeback, or the host's KSM switches
    on or off. Either switch invalidates the cell. KSM is restored after the cell. In a loop (`run --loop`),
    `tiles=COUNT --now` adds a tile or retires the newest while the others work, and `end --now` ends the loop: no
    workload starts again.
    """
    run, changes = _split(words)
    if as_list and (changes or cell is not None or now):
        raise UsageError("--list only shows the cells to come; leave out the change")
    if as_json and not as_list:
        raise UsageError("--json is for the list of the cells to come; say --list --json")
    wanted = {} if as_list else _wanted(changes, cell, now=now)
    folder = run_meant(run)
    if now:
        write_text(changed_now_words(ChangeRunning(origin=_ORIGIN, **wanted).ask(folder)))
    elif not as_list:
        coming = ChangeComing(origin=_ORIGIN, **wanted).ask(folder)["coming"]
        write_text(changed_words(coming, wanted.get("cell")))
    else:
        coming = ListComing(origin=_ORIGIN).ask(folder)["coming"]
        if as_json:
            write_json(coming_document(folder, coming))
        else:
            write_text(coming_text(coming))


def _split(words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The run, None for the one under way, and the changes: a first word that is a change names no run."""
    if not words or words[0] in WORDS or "=" in words[0]:
        return None, words
    return words[0], words[1:]


def _wanted(changes: tuple[str, ...], cell: int | None, *, now: bool) -> dict[str, Any]:
    """What the run is asked for. Raises UsageError for what no run can do."""
    if not changes:
        raise UsageError("no change is given; use NAME=VALUE, such as cache=none, or --list")
    words = [text for text in changes if text in WORDS]
    if words and len(changes) > 1:
        raise UsageError(f"{words[0]} cannot be combined with another change")
    wanted: dict[str, Any] = {WORDS[words[0]]: True} if words else dict(map(_change, changes))
    if now and cell is not None:
        raise UsageError("--cell is for a cell to come; --now is for the one that runs")
    if words and words[0] not in ChangeComing.WORDS and not now:
        raise UsageError("end is for the loop that runs; say end --now, or `vmlab stop` for the whole run")
    may = ChangeRunning.WORDS if words else ChangeRunning.AXES
    if now and (other := [one for one in words or sorted(wanted) if one not in may]):
        what = f"--now is for {', '.join(ChangeRunning.AXES[:-1])} or {ChangeRunning.AXES[-1]}, and end for a loop"
        raise UsageError(f"{' and '.join(other)} cannot be changed while guests run; {what}")
    if now and len(wanted) > 1:
        raise UsageError("--now changes one thing at a time")
    if not words and not now and (unknown := sorted(wanted.keys() - set(ChangeComing.AXES))):
        can = f"{' and '.join(ChangeComing.AXES)} can"
        raise UsageError(f"the cells to come cannot be given another {', '.join(unknown)}; {can}")
    if words == ["skip"] and cell is None:
        raise UsageError("skip needs --cell N; --list has the numbers")
    return wanted if cell is None else {**wanted, "cell": cell}


def _change(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise UsageError(f"{text!r} is not a change; use NAME=VALUE, such as cache=none")
    if name == "tiles" and value.isdecimal():
        if len(value) > _MOST_DIGITS:
            raise UsageError(f"{value[:_MOST_DIGITS]}… tiles are more than any host carries")
        return name, int(value)
    return name, value
