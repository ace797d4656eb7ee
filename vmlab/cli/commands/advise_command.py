"""`vmlab advise`: what a recording of the host says of its own guests' cache modes."""

from __future__ import annotations

from dataclasses import asdict

import click

from vmlab.analysis.advice.advice import advise as advice_of
from vmlab.analysis.document import run_document
from vmlab.cli.output import page_width, write_json, write_text
from vmlab.model.errors import UsageError
from vmlab.model.visible import visible_values
from vmlab.report.advice_text import advice_text
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run

SCHEMA = "vmlab.advice/1"


@click.command()
@click.argument("run", default="last", metavar="[RUN]")
@click.option("--json", "as_json", is_flag=True, help="Print advice and evidence as JSON.")
def advise(run: str, as_json: bool) -> None:
    """Say for which disks of this host's own guests the cache mode matters, and why, from the recording RUN."""
    with RunReader(resolve_run(run)) as reader:
        document = run_document(reader)
    if document["recording"] is None:
        raise UsageError(f"{document['run']['id']} is no recording of the host; `vmlab record` makes one")
    advised = advice_of(visible_values(document))
    if as_json:
        write_json({"schema": SCHEMA, "run": document["run"]["id"], **asdict(advised)})
    else:
        write_text(advice_text(advised, page_width()).rstrip("\n"))
