#!/usr/bin/env python3
"""Prints a Grafana dashboard of runs that were exported as OpenMetrics, and of `vmlab top --serve`.

A panel for each chart of the console, by the table of host figures, and each figure of guests; a table of run times.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from vmlab.analysis.figures.figure import WALL_SECONDS
from vmlab.model.run import RUN_TIME
from vmlab.model.sample import unit_of
from vmlab.report.exports.openmetrics_names import PART, FamilyNames
from vmlab.telemetry.guest_readings import DISKS, QUICK
from vmlab.telemetry.host.host_figures import figure_sources, figures_of_chart

_UNITS = {"%": "percent", "B": "bytes", "B/s": "Bps", "ms": "ms", "s": "s", "1/s": "ops", "W": "watt", "1": "short"}
"""Grafana's names of units."""
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2
_NAMES = FamilyNames()
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_CHOSEN = 'run=~"$run",cell=~"$cell"'
"""Of a host that is scraped live neither label is there, and both variables are All."""
_OF_ALL = "of all CPUs"


def _selector(metric: str, unit: str, *matchers: str) -> str:
    return f"{_NAMES.of(metric, unit)[0]}{{{','.join((*matchers, _CHOSEN))}}}"


def _panel(title: str, unit: str, targets: Iterable[tuple[str, str]], kind: str = "timeseries") -> dict[str, Any]:
    instant = kind == "table"
    shown = {"format": "table", "instant": True, "range": False} if instant else {"range": True}
    return {
        "type": kind,
        "title": title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": _UNITS[unit], "custom": {} if instant else {"fillOpacity": 10}}},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": expr, "legendFormat": legend, **shown}
            for place, (expr, legend) in enumerate(targets)
        ],
    }


def _host_panels() -> Iterator[dict[str, Any]]:
    own = [figure for entry, source in figure_sources().items() if entry.is_own for figure in source.figures]
    for chart in dict.fromkeys(figure.chart for figure in own if figure.chart):
        figures = [figure for figure in figures_of_chart(chart) if figure.drawn and figure in own]
        targets = [(_selector(one.name, one.unit, f'{PART}=""'), one.short) for one in figures]
        yield _panel(chart.name, figures[0].unit, targets)


def _guest_panels() -> Iterator[dict[str, Any]]:
    for metric in (*QUICK.metrics[:2], *DISKS.metrics, *QUICK.metrics[2:]):
        unit = unit_of(metric)
        legend = f"{{{{{PART}}}}}"
        yield _panel(metric.replace("_", " "), unit, [(_selector(metric, unit), legend)])


def _figure_panels() -> Iterator[dict[str, Any]]:
    for metric, title in ((RUN_TIME, "run time of each workload"), (WALL_SECONDS, "wall clock of each cell")):
        expr = f'{_NAMES.of(metric, "s")[0]}{{scenario=~"$scenario",cell=~"$cell"}}'
        yield _panel(title, "s", [(expr, "")], "table")


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }


def dashboard() -> dict[str, Any]:
    """The dashboard, with the panels in two columns."""
    panels = [*_figure_panels(), *_host_panels(), *_guest_panels()]
    for place, panel in enumerate(panels):
        row, column = divmod(place, _COLUMNS)
        panel["id"] = place + 1
        panel["gridPos"] = {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    cpu = _NAMES.of("cpu_user_percent", "%")[0]
    return {
        "title": "vmlab",
        "uid": "vmlab",
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                source,
                _variable("scenario", "label_values(vmlab_run_info, scenario)"),
                _variable("run", f'label_values({cpu}{{scenario=~"$scenario"}}, run)'),
                _variable("cell", f'label_values({cpu}{{run=~"$run"}}, cell)'),
            ]
        },
        "panels": panels,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(dashboard(), indent=1) + "\n")
