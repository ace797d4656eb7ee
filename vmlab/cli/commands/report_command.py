"""`vmlab report`: a run, or several, as a file to be read and passed on."""

from __future__ import annotations

from pathlib import Path

import click

from vmlab.cli.shown_work import shown_work
from vmlab.report.page.report_file import FORMATS, write_report


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), required=True, help="Output file.")
@click.option("--format", "name", type=click.Choice(FORMATS), help="HTML, or Markdown for an issue or a wiki.")
def report(runs: tuple[str, ...], output: Path, name: str | None) -> None:
    """Write RUNS to one file that needs no network: the answer, charts, figures, cells, configuration, raw output.

    Of several the first is the baseline; A,B C,D are two sides of two runs each, and RUN:2 is one cell, as
    `vmlab compare` takes them.
    """
    with shown_work():
        write_report(runs, output, name)
