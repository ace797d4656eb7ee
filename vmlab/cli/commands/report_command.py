"""`vmlab report`: a run, or several, as a file to be read and passed on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from vmlab.analysis.comparison.compare import Side
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.visible import visible_line
from vmlab.report.page.gathered import Gathered, gather
from vmlab.store.named_runs import NamedSide, named_sides
from vmlab.store.reader import RunReader
from vmlab.system.new_file import new_file
from vmlab.system.packages import extra_command

_ENDINGS = {".html": "html", ".htm": "html", ".md": "md"}


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), required=True, help="Output file.")
@click.option("--format", "name", type=click.Choice(["html", "md"]), help="HTML, or Markdown for an issue or a wiki.")
def report(runs: tuple[str, ...], output: Path, name: str | None) -> None:
    """Write RUNS to one file that needs no network: the answer, charts, figures, cells, configuration, raw output.

    Of several the first is the baseline; A,B C,D are two sides of two runs each, and RUN:2 is one cell, as
    `vmlab compare` takes them.
    """
    name = name or _ENDINGS.get(output.suffix.lower())
    if name is None:
        raise UsageError(f"cannot infer the format from {output}; use --format html, md")
    try:
        text = _html(named_sides(runs)) if name == "html" else _markdown(named_sides(runs))
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise RefusedError(
            f"a report as HTML needs {error.name}", remedy=shlex.join(extra_command("report"))
        ) from error
    with new_file(output) as file:
        file.write(text)


def _html(sides: Sequence[NamedSide]) -> bytes:
    """The page. Its charts take a library that takes a second to load, so it is imported here."""
    from vmlab.report.page.content import COURSES
    from vmlab.report.page.html import html_report

    runs = _gathered(sides, COURSES)
    return html_report(list(runs.values()), _sides(sides, runs))


def _markdown(sides: Sequence[NamedSide]) -> bytes:
    from vmlab.report.page.markdown import markdown_report

    runs = _gathered(sides, ())
    return markdown_report(list(runs.values()), _sides(sides, runs))


def _gathered(sides: Sequence[NamedSide], courses: tuple[str, ...]) -> dict[Path, Gathered]:
    """Each run once, by its store."""
    found: dict[Path, Gathered] = {}
    for run in (run for side in sides for run in side.runs):
        if run.store not in found:
            with RunReader(run.store) as reader:
                found[run.store] = gather(run.name, reader, courses)
    return found


def _sides(sides: Sequence[NamedSide], runs: Mapping[Path, Gathered]) -> list[Side]:
    """The sides to be compared; none for one whole run, whose page has its own differences."""
    if len(sides) == len(sides[0].runs) == 1 and sides[0].runs[0].cell is None:
        return []
    return [
        Side.of_runs(
            visible_line(side.label),
            [Side.of(visible_line(run.name), runs[run.store].document, run.cell) for run in side.runs],
        )
        for side in sides
    ]
