"""What was switched in a running cell, in words and with the host's figures in each span."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmlab.analysis.shape import CellDocument, SpanDocument, TileChangeDocument
from vmlab.report.blocks import Column
from vmlab.report.run.host_rows import mean_text, row_label
from vmlab.report.run.latency_text import span_latency_lines
from vmlab.report.run.loop_text import loop_lines, loop_rows_of
from vmlab.report.words import NOT_MEASURED, number, plural, switch_words, tiles_words
from vmlab.report.writers.text import grid
from vmlab.telemetry.host.host_figures import headlines


def switch_lines(cell: CellDocument) -> Iterator[str]:
    """A sentence for each switch of a cell."""
    for one in cell["switches"]:
        yield f"switched {number(one['seconds'])} s after the start, as {one['origin']} asked: {switch_words(one)}"


def tile_change_lines(cell: CellDocument) -> Iterator[str]:
    """A sentence for each tile that was added or retired."""
    for one in cell["tile_changes"]:
        yield f"{number(one['seconds'])} s after the start, as {one['origin']} asked: {tiles_words(**_counts(one))}"


def _counts(one: TileChangeDocument) -> dict[str, int]:
    return {"before": one["before"], "after": one["after"]}


def span_lines(cell: CellDocument, width: int) -> list[str]:
    """The host's means in each span between switches, a column each, and what a loop did in it; [] without samples."""
    # Where tiles alone changed, the cache mode still says which guests they were.
    names = list(dict.fromkeys(one["what"] for one in cell["switches"])) or ["cache"]
    heads = [_span_words(span, names, tiles=bool(cell["tile_changes"])) for span in cell["spans"]]
    spans, corner = cell["spans"], " / ".join(names)
    latency = span_latency_lines(spans, heads, corner, width)
    return [
        *_host_lines(spans, heads, corner, width),
        *(["", *latency] if latency else []),
        *_loops(spans, heads, width),
    ]


def _span_words(span: SpanDocument, names: Iterable[str], *, tiles: bool) -> str:
    """What was in force in a span of all that was changed, and when."""
    said = {"cache": span["cache"], "ksm": span["ksm"]}
    state = " / ".join(filter(None, (said[name] for name in names)))
    count = "" if span["tiles"] is None or not tiles else plural(span["tiles"], "tile")
    when = f"{number(span['since'])} to {number(span['until'])} s"
    return ", ".join(filter(None, (state, count, when)))


def _loops(spans: Sequence[SpanDocument], heads: Sequence[str], width: int) -> Iterator[str]:
    """What the workloads of a looped cell did in each span."""
    for span, head in zip(spans, heads, strict=True):
        if lines := loop_lines(loop_rows_of(span["loop"]), width):
            yield from ("", head, *lines)


def _host_lines(spans: Sequence[SpanDocument], heads: Sequence[str], title: str, width: int) -> list[str]:
    rows = [figure for figure in headlines() if any(figure.name in span["host"] for span in spans)]
    if not rows:
        return []
    columns = [
        Column(
            head,
            [
                mean_text(figure, span["host"][figure.name]["mean"]) if figure.name in span["host"] else NOT_MEASURED
                for figure in rows
            ],
        )
        for span, head in zip(spans, heads, strict=True)
    ]
    return ["host, mean in each span", *grid(title, list(map(row_label, rows)), columns, width)]
