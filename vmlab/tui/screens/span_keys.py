"""The key that draws the charts over all that is kept, the last hour on Live, or over the newest ticks again."""

from __future__ import annotations

from textual.binding import Binding
from textual.screen import Screen

from vmlab.model.quantities import format_seconds
from vmlab.tui.widgets.charts.chart_board import ChartBoard

SPAN_KEYS = (Binding("z", "span", "Hour", show=False, tooltip="Charts over all that is kept, up to an hour; or back"),)


def switch_span(screen: Screen[None]) -> None:
    """All that is kept, or the newest ticks; says which."""
    charts = screen.query_one(ChartBoard)
    charts.is_whole = not charts.is_whole
    charts.repaint()
    what = "all that is kept" if charts.is_whole else "the newest ticks"
    screen.notify(f"charts: {what}, {format_seconds(charts.span_seconds)}")
