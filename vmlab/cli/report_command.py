"""`vmlab report`: a run, or several, as a file to be read and passed on."""

from __future__ import annotations

from pathlib import Path

import click

from vmlab.model.errors import RefusedError, UsageError
from vmlab.report.page.gathered import Gathered, gather
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run
from vmlab.system.new_file import new_file

_ENDINGS = {".html": "html", ".htm": "html", ".md": "md"}


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--format", "name", type=click.Choice(["html", "md"]), help="HTML, or Markdown for an issue or a wiki.")
def report(runs: tuple[str, ...], output: Path, name: str | None) -> None:
    """Write RUNS to one file that needs no network: the answer, charts, figures, cells, configuration, raw output.

    Of several runs the first is the baseline.
    """
    name = name or _ENDINGS.get(output.suffix.lower())
    if name is None:
        raise UsageError(f"the name of {output} tells no format; use --format html, md")
    try:
        text = _html(runs) if name == "html" else _markdown(runs)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise RefusedError(f"a report as HTML needs {error.name}", remedy="pip install 'vmlab[report]'") from error
    with new_file(output) as file:
        file.write(text)


def _html(runs: tuple[str, ...]) -> bytes:
    """The page. Its charts take a library that takes a second to load, so it is imported here."""
    from vmlab.report.page.content import COURSES
    from vmlab.report.page.html import html_report

    return html_report([_gathered(run, COURSES) for run in runs])


def _markdown(runs: tuple[str, ...]) -> bytes:
    from vmlab.report.page.markdown import markdown_report

    return markdown_report([_gathered(run, ()) for run in runs])


def _gathered(run: str, courses: tuple[str, ...]) -> Gathered:
    with RunReader(resolve_run(run)) as reader:
        return gather(run, reader, courses)
