"""The keys that choose which host of a fleet is shown in full, and the strip of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

if TYPE_CHECKING:
    from vmlab.tui.screens.watch_screen import WatchScreen

HOST_KEYS = (
    Binding(
        "f",
        "next_host(1)",
        "Next host",
        show=False,
        key_display="fF",
        tooltip="A fleet: its next host, or the one before, in full",
    ),
    Binding("F", "next_host(-1)", show=False),
)
_ROOMY = 30
"""Rows from which on hosts have a line each."""


def draw_hosts(screen: WatchScreen) -> None:
    """The strip of hosts, above charts and guests, which are those of one of them; nothing where there is no fleet."""
    hosts = screen.hosts
    shown = hosts is not None and len(hosts) > 0
    screen.set_class(shown, "-fleet")
    if hosts is None or not shown:
        return
    from vmlab.tui.widgets.charts.chart_board import ChartBoard
    from vmlab.tui.widgets.tables.host_strip import TITLE, HostStrip

    height = screen.size.height
    rows = 1 if height < _ROOMY else height // 5
    before = next(id for id in ("#large", "#answer", "#middle") if screen.query(id))
    strip = screen.pane(HostStrip, "hosts", before=before, title=TITLE)
    now = screen.now()
    strip.show(hosts.views(now), screen.host, now, rows)
    screen.query_one(ChartBoard).border_title = f"Host {screen.host}" if screen.host else "Host"
