"""One table of host figures: every label stands in it alone, and everything that is shown is recorded."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.telemetry.recorded import RecordedHost
from tests.telemetry.test_names import recorded_names
from vmlab.analysis.cell_shape import StageDocument
from vmlab.cli import top_view
from vmlab.model import sample
from vmlab.model.results import Summary
from vmlab.report.run import cell_text
from vmlab.report.writers.text import text_lines
from vmlab.telemetry.host.host_figures import charts, figures_of_chart, figures_of_group, headlines, host_figures

VMLAB = Path(__file__).parents[2] / "vmlab"
CHARTS = [
    *("CPU", "CPU speed", "Disk busy", "Disk wait", "Disk rate"),
    *("Memory", "Limited memory", "KSM", "Pressure", "Lab network"),
]


def test_the_headlines_are_those_that_documents_promise() -> None:
    assert [figure.name for figure in headlines()] == [
        "cpu_user_percent",
        "cpu_system_percent",
        "cpu_iowait_percent",
        "cpu_speed_percent",
        "disk_await_ms",
        "disk_util_percent",
        "disk_read_bytes_per_second",
        "disk_write_bytes_per_second",
        "memory_used_bytes",
        "memory_cached_bytes",
        "ksm_saved_bytes",
    ]


def test_what_is_shown_is_recorded(host: RecordedHost) -> None:
    names = {figure.name for figure in host_figures()} | {name for figure in host_figures() for name in figure.added}
    names |= {name for figure in host_figures() for name, _ in figure.area or ()}
    assert names <= recorded_names(host)
    assert len({figure.name for figure in host_figures()}) == len(host_figures())


def test_every_chart_and_line_that_a_figure_names_is_there() -> None:
    assert [chart.name for chart in charts()] == CHARTS
    assert all(len({figure.unit for figure in figures_of_chart(chart) if figure.drawn}) == 1 for chart in charts())
    panels = [chart.panel for chart in charts() if chart.panel is not None]
    assert len(set(panels)) == len(panels)
    assert figures_of_group("Disk")


@pytest.mark.parametrize("label", sorted({figure.label for figure in headlines()}))
def test_a_label_stands_in_one_file(label: str) -> None:
    quoted = re.compile(rf'"{re.escape(label)}[ ",]', re.IGNORECASE)
    found = [str(file.relative_to(VMLAB)) for file in VMLAB.rglob("*.py") if quoted.search(file.read_text())]
    assert len(found) == 1, found


@pytest.mark.parametrize("unit", sorted({unit for _, unit in sample._UNITS} | {"1"}))
def test_top_writes_figures_of_every_unit(unit: str) -> None:
    assert re.fullmatch(r"2(\.0)? \S+", top_view._WRITTEN[unit](2.0))


def test_a_stage_has_the_cpu_and_the_disk_beside_it() -> None:
    host = {figure.name: Summary(1.0, 1.0, 1.0, 1.0) for figure in headlines()}
    cell: Any = SimpleNamespace(stages=[StageDocument("suite", 1, "write", 1.0, host)])
    heads = " ".join(text_lines([cell_text._stages(cell)], 160)[:2])
    shown = [figure.label for figure in headlines() if figure.label in heads]
    assert shown == ["CPU user", "CPU system", "CPU iowait", "disk await", "disk util"]
