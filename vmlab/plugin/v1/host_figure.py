"""For the entry points ``vmlab.host_figures``: a `FigureSource`, with groups of figures that are read at each tick.

Of `Watched` only ``roots``, ``lab_folders``, ``network`` and ``notify`` are promised.
"""

from vmlab.telemetry.host.host_figures import FigureSource, Group, GroupMaker, HostFigure, Watched
from vmlab.telemetry.source import NAN, KernelFile, KeyedLines, Roots, growth, growth_within

__all__ = [
    "NAN",
    "FigureSource",
    "Group",
    "GroupMaker",
    "HostFigure",
    "KernelFile",
    "KeyedLines",
    "Roots",
    "Watched",
    "growth",
    "growth_within",
]
