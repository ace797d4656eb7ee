"""Interrupts that the host served, from /proc/stat (proc(5))."""

from __future__ import annotations

from vmlab.plugin.v1.host_figure import (
    NAN,
    FigureSource,
    GroupMaker,
    HostFigure,
    KernelFile,
    Roots,
    Watched,
    growth,
)


class Interrupts:
    """A rate, which is unknown at the first reading. The ending of its name is its unit."""

    title = "interrupts"
    names: tuple[str, ...] = ("interrupts_per_second",)

    def __init__(self, roots: Roots) -> None:
        self._file = KernelFile(roots.proc / "stat")
        self._before: int | None = None

    def read(self, mono: float, length: float) -> list[float]:
        """One value, for the `length` seconds that ended at `mono`."""
        line = self._file.read().partition(b"\nintr ")[2]
        now = int(line.split(None, 1)[0])
        before, self._before = self._before, now
        return [NAN if before is None else growth(now, before) / length]


def _made(watched: Watched) -> Interrupts:
    return Interrupts(watched.roots)


INTERRUPTS = FigureSource(
    groups=(GroupMaker(Interrupts.title, _made),),
    # A headline is in every table, document, report and comparison; `group` is its line in `vmlab top`.
    figures=(HostFigure("interrupts_per_second", "interrupts", "served", "Interrupts", headline=True),),
)
