"""What hosts of a fleet did together, below the figures of each: sums, the worst host, and the skew of their start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.figure import WALL_CLOCK, Figure, figure_of, over_tiles, wall_seconds
from vmlab.analysis.shape import (
    OverHostsDocument,
    RunDocument,
    TogetherDocument,
)
from vmlab.analysis.tiles.over_hosts import cells_of_all_hosts
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.quantities import Written
from vmlab.model.run import RUN_TIME, AxisValue, Outcome
from vmlab.report.blocks import Column, Section, Table
from vmlab.report.figures import figure_text, form_of, with_unit
from vmlab.report.words import NOT_MEASURED

TOGETHER_TITLE = "all hosts together"
_Place = tuple[tuple[str, AxisValue], ...]


def together_section(document: RunDocument) -> Section:
    """Sums and worst hosts, a column for each place of the axes; empty for a run whose hosts did not run together."""
    known = zip(document.together, cells_of_all_hosts(document), strict=True)
    places = grouped((tuple(one.axes.items()), cell) for one, cell in known)
    figures = {(one.workload, one.metric): one for whole in document.together for one in whole.over_hosts}
    rows = [_row(document, places, one) for one in figures.values() if one.sum is not None or one.worst is not None]
    columns = [
        Column(axes_words(dict(place)) if place else "all cells", [texts[at] for _, texts in rows])
        for at, place in enumerate(places)
    ]
    return Section("", [Table(TOGETHER_TITLE, [label for label, _ in rows], columns)])


def _row(
    document: RunDocument, places: Mapping[_Place, list[CellDocument]], one: OverHostsDocument
) -> tuple[str, list[str]]:
    workload, metric = one.workload, one.metric
    value = wall_seconds if workload == WALL_CLOCK else over_tiles(workload, metric)
    found = {place: figure_of(cells, value) for place, cells in places.items()}
    form = form_of(one.unit, found.values())
    name = workload if metric == RUN_TIME or workload == WALL_CLOCK else f"{workload} {metric}"
    label = with_unit(f"{name}, {'worst host' if one.sum is None else 'sum'}", one.unit, form)
    return label, [_text(document, place, figure, one, form) for place, figure in found.items()]


def _text(document: RunDocument, place: _Place, figure: Figure, one: OverHostsDocument, form: Written) -> str:
    text = figure_text(figure, one.unit, form)
    if one.sum is not None or figure.spread is None:
        return text
    hosts = {
        other.worst_host
        for whole in document.together
        if tuple(whole.axes.items()) == place and whole.outcome == figure.state
        for other in whole.over_hosts
        if (other.workload, other.metric) == (one.workload, one.metric)
    }
    return f"{text} ({hosts.pop() if len(hosts) == 1 else 'varies'})"


def together_notes(document: RunDocument) -> Iterator[str]:
    """What the rows mean, and how far apart hosts started; nothing for a run whose hosts did not run together."""
    if not document.together:
        return
    yield "sum: of the rates of all hosts; worst host: the slowest tile of any, and varies: not the same in each repeat"
    if (text := skew_words(document.together)) != NOT_MEASURED:
        yield f"hosts started {text}"


def skew_words(together: Sequence[TogetherDocument]) -> str:
    """``at most 3.1 ms apart (± 1.2 ms)``: the largest skew of cells that passed, with its uncertainty."""
    known = [
        (one.start_skew_ms, one.skew_uncertainty_ms or 0.0)
        for one in together
        if one.start_skew_ms is not None and one.outcome == Outcome.PASSED
    ]
    if not known:
        return NOT_MEASURED
    skew, uncertainty = max(known)
    return f"at most {skew:.1f} ms apart (± {uncertainty:.1f} ms)"
