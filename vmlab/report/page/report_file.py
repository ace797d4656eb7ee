"""Writes the report of runs that are named into a file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from vmlab.analysis.compared_runs import sides_to_compare
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side, demand_distinct
from vmlab.integrity.long_work import current
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.ordered import ordered_title
from vmlab.model.visible import visible_line, visible_values
from vmlab.report.comparison_text import side_names
from vmlab.report.heading import behind_words
from vmlab.report.page.gathered import Gathered, gather
from vmlab.store.reader import RunReader
from vmlab.store.runs import NamedSide, named_sides
from vmlab.system.given_file import new_file
from vmlab.system.packages import extra_command

FORMATS = ("html", "md")
CHARTS = ("svg", "png")
_ENDINGS = {".html": "html", ".htm": "html", ".md": "md"}


def write_report(runs: Sequence[str], output: Path, name: str | None = None) -> None:
    """Write the report of runs to the file `output`, as `vmlab report` does; `name` is one of `FORMATS`.

    Raises UsageError for what names no run and for a file whose ending names no format, RefusedError where a package
    is missing, StoreError for a damaged store, and OSError.
    """
    name = name or _ENDINGS.get(output.suffix.lower())
    if name is None:
        raise UsageError(f"cannot infer the format from {output}; use --format {', '.join(FORMATS)}")
    if name not in FORMATS:
        raise UsageError(f"a report has no format {name[:64]!r}; use {', '.join(FORMATS)}")
    sides = named_sides(runs)
    with _needing_matplotlib("a report as HTML"):
        text = _html(sides) if name == "html" else _markdown(sides)
    with new_file(output) as file:
        file.write(text)


def write_chart(runs: Sequence[str], output: Path, figure: str | None = None) -> None:
    """Write one chart of a comparison to the file `output`, SVG or PNG by its ending, as ``vmlab report --chart`` does.

    `figure` is a workload, a metric, or WORKLOAD.METRIC. Raises UsageError for what names no run, no figure or several,
    and for another ending, RefusedError where a package is missing, StoreError for a damaged store, and OSError.
    """
    ending = output.suffix.lower().removeprefix(".")
    if ending not in CHARTS:
        raise UsageError(f"a chart has no format {output.suffix[:64]!r}; name a file {' or '.join(CHARTS)}")
    found = visible_values(compare(sides_to_compare(runs)))
    with _needing_matplotlib("a chart"):
        from vmlab.report.page.content import chart_of

        chart, dots = chart_of(replace(found, labels=tuple(side_names(found.labels))), figure)
        title = ordered_title(chart.title, behind_words(found.accelerators, found.ordered))
        picture = dots.picture(f"{title}. {chart.note}" if chart.note else title, ending)
    with new_file(output) as file:
        file.write(picture)


@contextmanager
def _needing_matplotlib(what: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise RefusedError(f"{what} needs {error.name}", remedy=shlex.join(extra_command("report"))) from error


def _html(sides: Sequence[NamedSide]) -> bytes:
    # The charts of a page take a library that takes a second to load, and may be missing.
    from vmlab.report.page.content import COURSES
    from vmlab.report.page.report_page import html_report

    runs = _gathered(sides, COURSES)
    return html_report(list(runs.values()), _sides(sides, runs))


def _markdown(sides: Sequence[NamedSide]) -> bytes:
    from vmlab.report.page.report_page import markdown_report

    runs = _gathered(sides, ())
    return markdown_report(list(runs.values()), _sides(sides, runs))


def _gathered(sides: Sequence[NamedSide], courses: tuple[str, ...]) -> dict[Path, Gathered]:
    """Each run once, by its store."""
    found: dict[Path, Gathered] = {}
    for run in (run for side in sides for run in side.runs):
        if run.store not in found:
            with RunReader(run.store) as reader:
                current().begin(f"reading run {run.name}", reader.sample_count(), "samples")
                found[run.store] = gather(run.name, reader, courses)
    return found


def _sides(sides: Sequence[NamedSide], runs: Mapping[Path, Gathered]) -> list[Side]:
    """The sides to be compared; none for one whole run, whose page has its own differences.

    Raises UsageError for what is named twice.
    """
    if len(sides) == len(sides[0].runs) == 1 and sides[0].runs[0].cell is None:
        return []
    found = [
        Side.of_runs(
            visible_line(side.label),
            [Side.of(visible_line(run.name), runs[run.store].document, run.cell) for run in side.runs],
        )
        for side in sides
    ]
    demand_distinct(found)
    return found
