"""What was switched in a running cell, in words and with the host's figures in each span."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmlab.analysis.cell_shape import (
    CellDocument,
    SpanDocument,
    TileChangeDocument,
)
from vmlab.model.jsonable import fields_of
from vmlab.report.blocks import Column, Section, Table
from vmlab.report.run.host_rows import mean_text, row_label
from vmlab.report.run.latency_text import span_latency_section
from vmlab.report.run.loop_text import loop_section
from vmlab.report.words import NOT_MEASURED, number, plural, switch_words, tiles_words
from vmlab.telemetry.host.host_figures import headlines


def switch_lines(cell: CellDocument) -> Iterator[str]:
    """A sentence for each switch of a cell."""
    for one in cell.switches:
        yield f"switched {number(one.seconds)} s after the start, as {one.origin} asked: {switch_words(fields_of(one))}"


def tile_change_lines(cell: CellDocument) -> Iterator[str]:
    """A sentence for each tile that was added or retired."""
    for one in cell.tile_changes:
        yield f"{number(one.seconds)} s after the start, as {one.origin} asked: {tiles_words(**_counts(one))}"


def _counts(one: TileChangeDocument) -> dict[str, int]:
    return {"before": one.before, "after": one.after}


def span_sections(cell: CellDocument) -> Iterator[Section]:
    """The host's means in each span between switches, a column each, and what a loop did in it."""
    # Where tiles alone changed, the cache mode still says which guests they were.
    names = list(dict.fromkeys(one.what for one in cell.switches)) or ["cache"]
    spans, corner = cell.spans, " / ".join(names)
    heads = [_span_words(span, names, tiles=bool(cell.tile_changes)) for span in spans]
    yield _host_section(spans, heads, corner)
    yield span_latency_section(spans, heads, corner)
    for span, head in zip(spans, heads, strict=True):
        yield loop_section(span.loop, head)


def _span_words(span: SpanDocument, names: Iterable[str], *, tiles: bool) -> str:
    """What was in force in a span of all that was changed, and when."""
    said = {"cache": span.cache, "ksm": span.ksm}
    state = " / ".join(filter(None, (said[name] for name in names)))
    count = "" if span.tiles is None or not tiles else plural(span.tiles, "tile")
    when = f"{number(span.since)} to {number(span.until)} s"
    return ", ".join(filter(None, (state, count, when)))


def _host_section(spans: Sequence[SpanDocument], heads: Sequence[str], corner: str) -> Section:
    rows = [figure for figure in headlines() if any(figure.name in span.host for span in spans)]
    columns = [
        Column(
            head,
            [
                mean_text(figure, span.host[figure.name].mean) if figure.name in span.host else NOT_MEASURED
                for figure in rows
            ],
        )
        for span, head in zip(spans, heads, strict=True)
    ]
    return Section("host, mean in each span", [Table(corner, list(map(row_label, rows)), columns)] if rows else [])
