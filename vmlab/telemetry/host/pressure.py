"""Pressure stall information, from /proc/pressure (Documentation/accounting/psi.rst)."""

from __future__ import annotations

from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, HostChart, HostFigure
from vmlab.telemetry.source import NAN, KernelFile, Roots, growth_within, most_seconds

RESOURCES = ("cpu", "io", "memory")

_CHART = HostChart("Pressure", panel=6, stacked=False, top=100.0)
FIGURES = (
    HostFigure("pressure_cpu_some_percent", "pressure cpu", "cpu", "Stalled", chart=_CHART),
    HostFigure("pressure_io_some_percent", "pressure io", "io", "Stalled", chart=_CHART, tone="three"),
    HostFigure("pressure_memory_some_percent", "pressure memory", "mem", "Stalled", chart=_CHART, tone="two"),
)


class Pressure:
    """The share of the tick in which some, or all, tasks waited for CPU, I/O or memory, in percent.

    It comes from the ``total`` counters (microseconds), not from the kernel's ten-second averages. These begin anew
    where PSI is switched off and on, and none grows by more than the time that passed: else it is unknown.
    """

    title = "pressure (PSI)"
    names: tuple[str, ...] = tuple(
        f"pressure_{resource}_{kind}_percent" for resource in RESOURCES for kind in ("some", "full")
    )

    def __init__(self, roots: Roots) -> None:
        self._files = [KernelFile(roots.proc / "pressure" / resource) for resource in RESOURCES]
        # Where PSI is built in but switched off, the files exist; only reading them fails.
        self._before: list[int | None] = [None] * len(self.names)
        for file in self._files:
            file.read()

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`. Kernels before 5.13 have no ``full`` for the CPU; it is NaN there."""
        now: list[int | None] = []
        for file in self._files:
            parts = file.read().split(b"total=")
            now += [int(parts[1].split(None, 1)[0]), int(parts[2]) if len(parts) > 2 else None]
        most = most_seconds(length) * 1e6
        values = [
            NAN if n is None or b is None else growth_within(n, b, most) / length / 1e4
            for n, b in zip(now, self._before, strict=True)
        ]
        self._before = now
        return values


SOURCE = FigureSource((GroupMaker(Pressure.title, lambda watched: Pressure(watched.roots)),), FIGURES, place=8)
