"""A run's own table, from the JSON that was kept of it: where a publication has charts alone, or not these rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmlab.analysis.figures.figure import Figure
from vmlab.analysis.statistics.descriptive import Spread
from vmlab.model.axes import axes_words, axis_word
from vmlab.model.run import EMULATED
from vmlab.model.scenarios.table_words import METRICS, PARTS
from vmlab.report.blocks import Column
from vmlab.report.figures import figure_text, with_unit
from vmlab.report.run.shown_tables import metric_words
from vmlab.report.words import relative_number
from vmlab.report.writers.text import grid


def own_table(record: Mapping[str, Any], table: Mapping[str, Any], width: int = 118) -> list[str]:
    """The lines of one of the `tables` of a record, with an empty one before; no line is wider than `width`."""
    labels = [_head(row["head"], row["entries"]) for row in table["rows"]]
    columns = []
    for place, head in enumerate(table["columns"]):
        entries = [row["entries"][place] for row in table["rows"]]
        *above, heading = [_word(part, value, entries) for part, value in head.items()] or ["all cells"]
        texts = [
            _text(entry, table["relative"], emulated=_emulated(record, {**table["axes"], **row["head"], **head}))
            for row, entry in zip(table["rows"], entries, strict=True)
        ]
        columns.append(Column(heading, texts, above=tuple(above)))
    axes = dict.fromkeys(part for head in table["columns"] for part in head if part not in PARTS)
    return ["", *_caption(table), *grid(" / ".join(axes), labels, columns, width)]


def _emulated(record: Mapping[str, Any], place: Mapping[str, Any]) -> bool:
    """Whether a virtual machine under emulation took part in the cells of a place in a table."""
    on_host = any(axes.items() <= place.items() for axes in record.get("host_cells", ()))
    return record["beside"]["run"]["accelerator"] == EMULATED and not on_host


def _caption(table: Mapping[str, Any]) -> list[str]:
    """What all figures of the table share: values of axes, the workload, the metric with its unit."""
    entries = [entry for row in table["rows"] for entry in row["entries"]]
    words = [axes_words(table["axes"])] if table["axes"] else []
    words += [_word(part, value, entries) for part, value in table["fixed"].items()]
    return [", ".join(words)] if words else []


def _head(head: Mapping[str, Any], entries: list[Mapping[str, Any]]) -> str:
    return ", ".join(_word(part, value, entries) for part, value in head.items())


def _word(part: str, value: Any, entries: list[Mapping[str, Any]]) -> str:
    if part != METRICS:
        return axis_word(value)
    units = {entry["unit"] for entry in entries if entry["mean"] is not None} - {"", "1", "%"}
    return with_unit(metric_words(value), units.pop() if len(units) == 1 else "")


def _text(entry: Mapping[str, Any], relative: Any, *, emulated: bool) -> str:
    spread = None if entry["mean"] is None else Spread(entry["mean"], entry["half_width_95"], entry["count"])
    text = figure_text(Figure(entry["state"], spread, entry["left_out"]), entry["unit"])
    if spread is not None and emulated:
        text += f" {EMULATED}"
    return f"{text} ({relative_number(entry['relative'], relative)})" if entry["relative"] is not None else text
