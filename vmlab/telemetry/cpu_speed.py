"""The figures of the CPUs' speed and the words for it; `speed_trace.py` reads them."""

from __future__ import annotations

from vmlab.telemetry.host.host_figures import FigureSource, HostChart, HostFigure

LABEL = "CPU speed"
_CHART = HostChart(LABEL, stacked=False, top=100.0, page="% of the best", track=f"{LABEL} %")
FIGURES = (HostFigure("cpu_speed_percent", LABEL, "of the best", "Speed", headline=True, chart=_CHART),)
NO_TRACE = "no speed trace"
BEST = "cpu_speed_best_ms"
"""The shortest time that the work took since the trace began: what speeds are relative to."""

SPEED = FIGURES[0].name
CAUSES = "work on the other hardware thread of a core, frequency or temperature"
"""What makes a CPU slower than its best, without steal."""


SOURCE = FigureSource(figures=FIGURES, place=3)
"""The recorder makes its group itself, where a trace is asked for."""
