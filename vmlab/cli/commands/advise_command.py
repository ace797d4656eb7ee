"""`vmlab advise`: what a recording of the host says of its own guests' cache modes."""

from __future__ import annotations

import click

from vmlab.analysis.advice.advice import advice_document, demand_recording
from vmlab.analysis.advice.advice import advise as advice_of
from vmlab.analysis.document import run_document
from vmlab.cli.output import page_width, write_json, write_text
from vmlab.model.visible import visible_values
from vmlab.report.run.recording_text import advice_text
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run


@click.command()
@click.argument("run", default="last", metavar="[RUN]")
@click.option("--json", "as_json", is_flag=True, help="Print advice and evidence as JSON.")
def advise(run: str, as_json: bool) -> None:
    """Say for which disks of this host's own guests the cache mode matters, and why, from the recording RUN."""
    with RunReader(resolve_run(run)) as reader:
        document = run_document(reader)
    if as_json:
        write_json(advice_document(document))
    else:
        demand_recording(document)
        write_text(advice_text(advice_of(visible_values(document)), page_width()).rstrip("\n"))
