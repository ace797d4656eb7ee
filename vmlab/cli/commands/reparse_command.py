"""`vmlab reparse`: the figures of a run again, from the raw output that it keeps."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vmlab.analysis.record.remade import changes_of
from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json, write_text
from vmlab.lab.process.reparse import Reparsed
from vmlab.lab.process.reparse import reparse as make_again
from vmlab.model.errors import ExitCode
from vmlab.model.visible import visible_line
from vmlab.report.words import plural
from vmlab.store.runs import resolve_run


@click.command()
@click.argument("run")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def reparse(run: str, dry_run: bool, as_json: bool) -> int:
    """Compute the figures of RUN again from the raw output of its tools, for example after a parser was fixed.

    The old figures are kept, and everything that shows the new ones says that they were made again.
    """
    found = make_again(resolve_run(run), dry_run=dry_run)
    if as_json:
        write_json(found.to_json(dry_run=dry_run))
    else:
        for line in _lines(found, dry_run=dry_run):
            write_text(visible_line(line))
        for line in (*found.problems, *found.beyond):
            say(visible_line(line))
    return int(ExitCode.FAILED if found.problems else ExitCode.PASSED)


def _lines(found: Reparsed, *, dry_run: bool) -> Iterator[str]:
    changes = [(event.cell, change) for event in found.changed for change in changes_of(event)]
    for cell, one in changes:
        was, value = ("none" if figure is None else f"{figure:.6g}" for figure in (one.was, one.value))
        place = f"cell {cell}, {one.workload} of tile {one.tile}, {one.metric}"
        yield visible_line(f"{place}: {was} -> {value} (unit {one.unit})")
    done = "would change" if dry_run else "changed"
    yield f"{plural(found.read, 'workload')} read again, {plural(len(changes), 'figure')} {done}"
