"""A line for each resource of the host where there is no room for charts: its figure, its last minute, its limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from vmlab.model.sample import Sample
from vmlab.system.text_width import exactly
from vmlab.tui.state.charts import CPU_SPEED, Chart, Resource, Series
from vmlab.tui.state.history import CpuUse
from vmlab.tui.widgets.charts.axis_scale import Scale, figure, scale_for
from vmlab.tui.widgets.charts.chart_head import PAUSED, flow, item, users_of
from vmlab.tui.widgets.painted import Line, Piece

_NAME, _FIGURE, _UNIT = 8, 5, 5
_SCALE, _LIMIT = 9, 6
_LEFT = _NAME + _FIGURE + 1 + _UNIT
_INDENT = "  "


class Row(NamedTuple):
    """What stands of a resource: its figure `now`, its sparkline in so many lines, and the sample of its facts.

    `use` says for whom the CPUs work. It `is_paused` while what it shows does not count.
    """

    resource: Resource
    scale: Scale
    now: float
    spark: Callable[[int], list[str]]
    last: Sample | None
    use: CpuUse | None
    is_paused: bool = False


def spark_width(width: int) -> int:
    """The columns of a sparkline on `width` columns."""
    return max(1, width - _LEFT - _SCALE - _LIMIT)


def heading(begin: str, axis: Sequence[Piece]) -> Line:
    """The time over the sparklines, and what stands beside them."""
    return [(f"{begin:>{_LEFT - 1}} ", "quiet"), *axis, (f"{'up to':>{_SCALE}}{'limit':>{_LIMIT}}", "quiet")]


def rows_of(rows: Sequence[Row], width: int, height: int, most: int) -> list[Line]:
    """Each resource with its facts below, in `height` lines: facts give way first, those of the last resource first.

    Room that is left over is for higher sparklines, of `most` lines each and all of the same height.
    """
    facts = [list(_facts(row, width)) for row in rows]
    room = height - len(rows)
    kept = [0] * len(rows)
    for line in range(max(map(len, facts), default=0)):
        for place, found in enumerate(facts):
            if line < len(found) and room > 0:
                kept[place] += 1
                room -= 1
    lines: list[Line] = []
    for row, found, count in zip(rows, facts, kept, strict=True):
        lines += [*_drawn(row, min(most, 1 + room // len(rows))), *found[:count]]
    if len(lines) < height:
        lines += [*[[]] * (height - len(lines) - 1), [("─" * width, "quiet")]]
    return lines[:height]


def _drawn(row: Row, rows: int) -> list[Line]:
    """A resource in so many lines: its figures in the first, and in the others its sparkline with the scale's end."""
    resource, scale = row.resource, row.scale
    is_full = resource.limit is not None and row.now >= resource.limit
    text, unit = ("", "") if row.is_paused else (figure(row.now, resource.chart.unit, scale), scale.unit)
    # The end of a scale such as the host's memory comes with the first figures.
    top = "" if row.last is None and isinstance(resource.chart.top, str) else f"{scale.text(scale.top)} {scale.unit}"
    limit = "" if resource.limit is None else f"{resource.limit:.0f} %"
    first, *others = row.spark(rows)
    tone = resource.chart.series[0].tone
    lines: list[Line] = [
        [
            (exactly(resource.name, _NAME), "title"),
            (f"{text:>{_FIGURE}} ", "bad" if is_full else "plain"),
            (f"{unit:<{_UNIT}}", "quiet"),
            (first, tone),
            (f"{top:>{_SCALE}}{limit:>{_LIMIT}}", "quiet"),
        ]
    ]
    for place, other in enumerate(others, start=2):
        end = f"0 {scale.unit}" if place == rows else ""
        lines.append([(" " * _LEFT, "plain"), (other, tone), (f"{end:>{_SCALE}}", "quiet")])
    return lines


def _facts(row: Row, width: int) -> Iterator[Line]:
    """What else is known of it, in as many lines as that takes."""
    room = width - len(_INDENT)
    note: list[Piece] = [(row.resource.note, "warning")]
    items = [note] if row.resource.note else []
    if row.is_paused:
        items.append([(PAUSED[0], "quiet")])
    else:
        if row.use is not None and (users := users_of(row.use, room)):
            items.append([*users, ("%", "quiet")])
        for chart, group in row.resource.facts:
            items += _group(chart, group, row)
    if items:
        yield from ([(_INDENT, "plain"), *line] for line in flow(items, room))


def _group(chart: Chart, group: Sequence[Series], row: Row) -> list[list[Piece]]:
    """The figures of one unit, which stands behind the last; those that this host does not have are left out."""
    scale = (
        row.scale if chart is row.resource.chart else scale_for(chart.unit, 0.0, 100.0 if chart.unit == "%" else None)
    )
    last = row.last
    if last is None:
        known = [] if chart is CPU_SPEED else list(group)
    else:
        known = [one for one in group if one.shown[0][0] in last.layout.position]
    items = [item(series._replace(tone="plain"), last, chart, scale, "") for series in known]
    if items:
        items[-1].append((f" {scale.unit}", "quiet"))
    return items
