"""`vmlab plugins`: the workloads, export formats and host figures there are, and which package each is of."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from vmlab.cli.output import page_width, write_json, write_text
from vmlab.model.errors import ExitCode
from vmlab.report.exports.export_format import export_formats
from vmlab.report.listing import names_text
from vmlab.system.entry_points import EXPORTS, GROUPS, HOST_FIGURES, WORKLOADS, Entry, broken, entries
from vmlab.telemetry.host.host_figures import figure_sources
from vmlab.workloads.registry import kinds

SCHEMA = "vmlab.plugins/1"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plugins(as_json: bool) -> None:
    """List kinds of workload, export formats and host figures, vmlab's own and those of other packages.

    Exits with 3 where one of another package is left out, which the last lines say.
    """
    found = list(_found())
    if as_json:
        write_json({"schema": SCHEMA, "plugins": found})
    else:
        for group, what in GROUPS.items():
            rows = [(one["name"], _words(one)) for one in found if one["group"] == group and one["left_out"] is None]
            write_text(f"{what}:\n{names_text(rows, page_width())}")
    sys.exit(ExitCode.REFUSED if broken() else ExitCode.PASSED)


def _found() -> Iterator[dict[str, Any]]:
    """Every entry point, with one line on what it is, or why it is left out."""
    known = {
        **{(WORKLOADS, name): kind.summary for name, kind in kinds().items()},
        **{(EXPORTS, name): ", ".join(one.endings) or "a folder" for name, one in export_formats().items()},
        **{
            (HOST_FIGURES, entry.name): ", ".join(
                [group.title for group in source.groups] or [figure.label for figure in source.figures]
            )
            for entry, source in figure_sources().items()
        },
    }
    why = {one.entry: one.why for one in broken()}
    for entry in (entry for group in GROUPS for entry in entries(group)):
        if entry in why or (entry.group, entry.name) in known:
            yield _document(entry, known.get((entry.group, entry.name), ""), why.get(entry))


def _document(entry: Entry, summary: str, why: str | None) -> dict[str, Any]:
    return {
        "group": entry.group,
        "name": entry.name,
        "package": entry.package,
        "version": entry.version,
        "summary": summary if why is None else None,
        "left_out": why,
    }


def _words(one: dict[str, Any]) -> str:
    return one["summary"] if one["package"] == "vmlab" else f"{one['summary']} ({one['package']} {one['version']})"
