"""`vmlab snapshot ls|rm`: the frozen guests that cells start from."""

from __future__ import annotations

import time

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json, write_text
from vmlab.guests.cached.collection import Entry
from vmlab.guests.snapshots import SNAPSHOTS, list_snapshots, size_limit
from vmlab.model.errors import RefusedError
from vmlab.model.quantities import format_bytes
from vmlab.model.visible import visible_line


@click.group()
def snapshot() -> None:
    """Frozen guests, made by the first run that needs them: list what is kept, remove it."""


@snapshot.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the snapshots that are kept, the one used last first, and what they may take together."""
    snapshots = list_snapshots()
    if as_json:
        rows = [_row(one) for one in snapshots]
        write_json({"schema": "vmlab.snapshots/1", "limit_bytes": size_limit(), "snapshots": rows})
        return
    for one in snapshots:
        marks = " ".join(word for word, holds in (("in use", one.in_use), ("damaged", not one.whole)) if holds)
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.used))
        write_text(f"{one.id:<32}  {format_bytes(one.bytes):>9}  used {used}  {marks}".rstrip())
    taken = format_bytes(sum(one.bytes for one in snapshots))
    say(f"{taken} of {format_bytes(size_limit())}" if snapshots else "no snapshot is kept; a run makes what it needs")


def _row(one: Entry) -> dict[str, object]:
    return {
        "id": one.id,
        "bytes": one.bytes,
        "created": one.created,
        "used": one.used,
        "in_use": one.in_use,
        "whole": one.whole,
    }


@snapshot.command("rm")
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove all snapshots that no run uses.")
def rm(ids: tuple[str, ...], everything: bool) -> None:
    """Remove snapshots; one that a run uses is refused. The next run that needs one makes it again."""
    if bool(ids) == everything:
        raise click.UsageError("name snapshots, or say --all")
    if everything:
        _remove_all()
    for one in ids:
        SNAPSHOTS.remove(one)
        say(f"removed {one}")


def _remove_all() -> None:
    """Remove all that no run uses, and report why the others were kept."""
    snapshots = list_snapshots()
    for one in snapshots:
        try:
            SNAPSHOTS.remove(one.id)
        except RefusedError as error:
            say(f"kept {one.id}: {visible_line(str(error))}")
        else:
            say(f"removed {one.id}")
    if not snapshots:
        say("no snapshot is kept")
