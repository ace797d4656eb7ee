"""Switches of the cache mode of a running cell, in words and with the host's figures in each span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.shape import CellDocument, SpanDocument, TileChangeDocument
from vmlab.report.grid import Column, grid
from vmlab.report.host_rows import mean_text, row_label
from vmlab.report.loops import loop_lines, loop_rows_of
from vmlab.report.words import NOT_MEASURED, number, plural, switch_words, tiles_words
from vmlab.telemetry.host_figures import HEADLINES


def switch_lines(cell: CellDocument) -> Iterator[str]:
    """A sentence for each switch of a cell."""
    for one in cell["switches"]:
        told = switch_words(one["before"], one["after"], one["pauses_ms"], one["drained_seconds"], one["drained_bytes"])
        yield f"switched {number(one['seconds'])} s after the start, as {one['origin']} asked: {told}"


def tile_change_lines(cell: CellDocument) -> Iterator[str]:
    """A sentence for each tile that was added or retired."""
    for one in cell["tile_changes"]:
        yield f"{number(one['seconds'])} s after the start, as {one['origin']} asked: {tiles_words(**_counts(one))}"


def _counts(one: TileChangeDocument) -> dict[str, int]:
    return {"before": one["before"], "after": one["after"]}


def span_lines(cell: CellDocument, width: int) -> list[str]:
    """The host's means in each span between switches, a column each, and what a loop did in it; [] without samples."""
    tiles = bool(cell["tile_changes"])
    return [*_host_lines(cell["spans"], width, tiles=tiles), *_loops(cell["spans"], width, tiles=tiles)]


def _span_words(span: SpanDocument, *, tiles: bool) -> str:
    parts = [span["cache"] or "", "" if span["tiles"] is None or not tiles else plural(span["tiles"], "tile")]
    what = ", ".join(filter(None, parts))
    return f"{what}, {number(span['since'])} to {number(span['until'])} s"


def _loops(spans: Sequence[SpanDocument], width: int, *, tiles: bool) -> Iterator[str]:
    """What the workloads of a looped cell did in each span."""
    for span in spans:
        if lines := loop_lines(loop_rows_of(span["loop"]), width):
            yield from ("", _span_words(span, tiles=tiles), *lines)


def _host_lines(spans: Sequence[SpanDocument], width: int, *, tiles: bool) -> list[str]:
    rows = [figure for figure in HEADLINES if any(figure.name in span["host"] for span in spans)]
    if not rows:
        return []
    columns = [
        Column(
            _span_words(span, tiles=tiles),
            [
                mean_text(figure, span["host"][figure.name]["mean"]) if figure.name in span["host"] else NOT_MEASURED
                for figure in rows
            ],
        )
        for span in spans
    ]
    return ["host, mean in each span", *grid("cache", list(map(row_label, rows)), columns, width)]
