"""A comparison as rows of text for the Compare screen: what is asked first, the host's figures below."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.meetings import Side, cells_alike
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure, figure_of, host_mean
from vmlab.model.run import RUN_TIME
from vmlab.report.comparison_text import COLUMNS, compared_rows, comparison_notes, overall_lines
from vmlab.report.heading import behind_words
from vmlab.report.headline import headline, repeats_to_tell
from vmlab.report.run.host_rows import mean_text, row_label
from vmlab.report.run.latency_text import KEYS, known_of, mean_percentiles, milliseconds, title
from vmlab.report.run.notice_text import at_best_notes
from vmlab.report.run.target_text import missed_sentence
from vmlab.report.verdicts import difference_parts
from vmlab.report.words import NOT_MEASURED
from vmlab.telemetry.host.host_figures import HostFigure, headlines

_RUN_TIMES = (RUN_TIME, WALL_SECONDS)


class Entry(NamedTuple):
    """A figure of one side, with its difference from the baseline, the interval of that, and a tone where it is proven.

    The baseline has no difference, and differences of too few readings have no interval. A bar is drawn of its `mean`,
    if there is one, and of the `half` width of the 95 % interval of that; one that does not count is of cells that did
    not pass.
    """

    text: str
    difference: str = ""
    interval: str = ""
    tone: str = "quiet"
    mean: float | None = None
    half: float = 0.0
    counts: bool = True

    @property
    def whole(self) -> str:
        """The difference with its interval."""
        return f"{self.difference} {self.interval}".rstrip()


class SideRow(NamedTuple):
    """A label with the entry of each side, whose bars end at `top`; headings and notes have no entries, and a tone."""

    label: str
    entries: tuple[Entry, ...] = ()
    tone: str = "title"
    top: float = 0.0


class ComparedSides(NamedTuple):
    """What the Compare screen shows of sides with these `labels`, the baseline first; `hint` while there are none.

    `limited` is the place of the host figure that belongs to the resource that was the limit of most cells.
    `rows` are figures, with notes on what is known of the differences; `narrow` are the same for a small screen, with
    the host's figures before these notes. `sentence` says it in one, with the key for more repeats. `bars` draw the
    first rows, of which there are `times`. `ordered` has the words for parts of a host that were not its own, on any
    side. `repeats` is how many a run needs where these prove nothing; None where they do, or several runs are compared.
    """

    labels: tuple[str, ...] = ()
    hint: Sequence[str] = ()
    rows: tuple[SideRow, ...] = ()
    warnings: tuple[str, ...] = ()
    sentence: str = ""
    bars: tuple[SideRow, ...] = ()
    times: int = 0
    ordered: tuple[str, ...] = ()
    repeats: int | None = None
    narrow: tuple[SideRow, ...] = ()
    limited: int = 0


def compared_sides(sides: Sequence[Side], *, every_metric: bool = False, left_out: Sequence[str] = ()) -> ComparedSides:
    """What comparing `sides` gives; only what its scenario asks for unless `every_metric`.

    `left_out` are the labels of sides for which there is no room, which is a warning.

    Raises UsageError where no cells meet.
    """
    compared = compare(sides)
    metrics = () if every_metric else compared.asked
    figures, bars = _figure_rows(compared, metrics, every_metric=every_metric)
    said = comparison_notes(compared, metrics=metrics)
    if every_metric:
        said += at_best_notes(compared.speed, compared.told())
    overall, notes = ([SideRow(line, tone="quiet") for line in lines] for lines in (overall_lines(compared), said))
    host, latency = _host_rows(sides), _latency_rows(sides)
    more = f"not shown here: {', '.join(left_out)}; `vmlab compare` has every side"
    missed = [f"{side.label}: {words}" for side in sides if (words := missed_sentence(side.cells))]
    repeats = repeats_to_tell(compared, metrics) if len({side.run.id for side in sides}) == 1 else None
    return ComparedSides(
        labels=tuple(side.label for side in sides),
        rows=(*figures, *overall, *notes, *host, *latency),
        narrow=(*figures, *overall, *host, *notes, *latency),
        warnings=(*([more] if left_out else []), *missed, *compared.warnings),
        sentence=headline(compared, metrics) + (f"; r plans a new run of {repeats}" if repeats else ""),
        bars=tuple(bars),
        times=len(figures),
        ordered=compared.ordered,
        repeats=repeats,
        limited=_limited(compared, sides),
    )


_FIGURES = {"disk": "disk_util_percent", "cpu": "cpu_user_percent", "memory": "memory_used_bytes"}
"""The host figure that shows how much of a resource is taken."""


def _limited(compared: Comparison, sides: Sequence[Side]) -> int:
    """The place of the figure of what was at its limit in most cells; of what was busiest where nothing was."""
    counts = Counter(resource for bound in compared.bound for resource in bound if resource in _FIGURES)
    names = [figure.name for figure in headlines()]
    ((resource, _),) = counts.most_common(1) or ((_busiest(sides), 0),)
    return names.index(_FIGURES[resource])


def _busiest(sides: Sequence[Side]) -> str:
    """CPU or disk, by how much of the time each was busy in all cells; the CPU where that is not known."""
    known = [cell.bound_by.evidence for side in sides for cell in side.cells if cell.bound_by is not None]
    return max(("cpu", "disk"), key=lambda one: math.fsum(each.get(f"{one}_busy_percent", 0.0) for each in known))


def _figure_rows(
    compared: Comparison, metrics: Sequence[str], *, every_metric: bool
) -> tuple[list[SideRow], list[SideRow]]:
    """The rows of the command line's table under a heading for each place, of `metrics` or all; and those with bars.

    Run times share one scale within a place, so that they compare by eye.
    """
    how = ", ".join(behind_words(compared.accelerators, compared.ordered))
    title = "Run times" if not every_metric and set(compared.asked) <= set(_RUN_TIMES) else "Metrics"
    title += f" {how}" if how else ""
    rows: list[SideRow] = []
    bars: list[SideRow] = []
    place: str | None = None
    for told in compared_rows(compared, metrics):
        row = told.row
        if told.place != place:
            place = told.place
            rows.append(SideRow(f"{title}, {place}" if place else title))
            bars += [SideRow(place)] if place else []
        beside = [one for one in compared.told(metrics) if one.axes == row.axes and one.metric in _RUN_TIMES]
        top = max(map(_top, beside if row.metric in _RUN_TIMES else [row]), default=0.0)
        entries = map(_compared, map(_entry, told.figures, row.figures), (None, *row.differences))
        rows.append(SideRow(told.label, tuple(entries), top=top))
        bars.append(rows[-1])
        further = [one for one in COLUMNS[1:] if any(one.of(row))] if every_metric else []
        for one in further:
            found = (_compared(Entry(""), other, one.words) for other in one.of(row))
            rows.append(SideRow(f"  {one.heading}", (Entry(""), *found)))
    return rows, bars


def _top(row: Row) -> float:
    spreads = [figure.spread for figure in row.figures if figure.spread]
    return max((abs(spread.mean) + (spread.half_width or 0.0) for spread in spreads), default=0.0)


def _entry(text: str, figure: Figure) -> Entry:
    half = (figure.spread.half_width if figure.spread else None) or 0.0
    return Entry(text, mean=figure.mean, half=half, counts=figure.comparable is not None)


def _compared(
    entry: Entry, found: Difference | None, words: Callable[[Difference], tuple[str, str]] = difference_parts
) -> Entry:
    """The entry with what it is against the baseline."""
    if found is None:
        return entry
    tone = "quiet" if found.better is None else "good" if found.better else "bad"
    difference, interval = words(found)
    return entry._replace(difference=difference, interval=interval, tone=tone)


def _host_rows(sides: Sequence[Side]) -> list[SideRow]:
    rows: list[SideRow] = []
    alike = cells_alike(sides)
    for shown in headlines():
        figures = [figure_of(cells, host_mean(shown.name)) for cells in alike]
        if any(figure.spread for figure in figures):
            entries = tuple(_host_entry(shown, figure.mean, figures[0].mean) for figure in figures)
            rows.append(SideRow(row_label(shown), entries))
    return [SideRow("Host, mean while the workloads ran"), *rows] if rows else []


def _host_entry(shown: HostFigure, mean: float | None, base: float | None) -> Entry:
    """A mean with how much that is from the baseline's: in points of what is a share, else in percent."""
    if mean is None:
        return Entry(NOT_MEASURED)
    text = mean_text(shown, mean)
    if base is None or text == mean_text(shown, base):
        return Entry(text)
    if shown.unit == "%":
        return Entry(text, f"{mean - base:+.1f} points")
    return Entry(text, f"{100 * (mean / base - 1):+.0f} %" if base else "")


def _latency_rows(sides: Sequence[Side]) -> list[SideRow]:
    """How long requests of the guests' disks took on each side, with the error of the bins in the title."""
    alike = cells_alike(sides)
    rows = [
        SideRow(
            f"{operation} {key.removesuffix('_ms')}",
            tuple(Entry(milliseconds(percentiles[place])) for percentiles in of_sides),
        )
        for operation, of_sides in mean_percentiles(alike).items()
        for place, key in enumerate(KEYS)
    ]
    if not rows:
        return []
    head = title(known_of(*alike), which="")
    return [SideRow(f"{head[0].upper()}{head[1:]}"), *rows]
