"""Kernel samepage merging, from /sys/kernel/mm/ksm, and the CPU time of ksmd itself."""

from __future__ import annotations

from pathlib import Path

from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, HostChart, HostFigure
from vmlab.telemetry.source import NAN, PAGE_BYTES, KernelFile, Roots, growth, growth_within, most_seconds, readable

_CHART = HostChart("KSM", panel=7, page="GiB")
FIGURES = (
    HostFigure("ksm_saved_bytes", "KSM saved", "saved", "KSM", headline=True, chart=_CHART),
    HostFigure("ksm_pages_sharing", "KSM sharing", "sharing", "KSM", chart=_CHART, tone="rest", drawn=False),
    HostFigure("ksm_pages_shared", "KSM shared", "shared", "KSM"),
    HostFigure("ksmd_cpu_percent", "ksmd", "ksmd", "KSM"),
)

_FILES = ("pages_shared", "pages_sharing", "pages_unshared", "pages_volatile", "full_scans")
_GAUGES, _SHARING = 5, 2


class Ksm:
    """The pages that KSM shares, and the memory that this saves.

    Saved memory is ``pages_sharing`` and ``ksm_zero_pages``: without KSM, so many more pages would be in use
    (Documentation/admin-guide/mm/ksm.rst). Zero pages are those that ``use_zero_pages`` maps to the kernel's own page
    of zeros; before Linux 6.6 nothing counts them, so that there the saved memory is not known while it is 1.
    ``general_profit``, on newer kernels, subtracts KSM's own structures, and may be negative.
    """

    title = "KSM"

    def __init__(self, roots: Roots) -> None:
        folder = roots.sys / "kernel/mm/ksm"
        self._run = KernelFile(folder / "run")
        self._files = [KernelFile(folder / name) for name in _FILES]
        names = ["ksm_run", *(f"ksm_{name}" for name in _FILES), "ksm_saved_bytes"]
        self._zero_pages = readable(folder / "ksm_zero_pages")
        self._uses_zero_pages = readable(folder / "use_zero_pages") if self._zero_pages is None else None
        self._profit = readable(folder / "general_profit")
        self._scanned = readable(folder / "pages_scanned")
        names += ["ksm_zero_pages"] * (self._zero_pages is not None)
        names += ["ksm_profit_bytes"] * (self._profit is not None)
        names += ["ksm_pages_scanned_per_second"] * (self._scanned is not None)
        self.names = tuple(names)
        self._scanned_before: int | None = None
        self._at_rest = False
        self.still = False
        """Whether KSM was off and without a page at both ends of the last tick, so that ksmd has done nothing."""
        self._last: list[float] = []

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        run = self._run.number()
        self.still = run == 0 and self._at_rest
        if self.still:
            # KSM is off and has no page, so no other figure can change.
            return self._last
        values: list[float] = [run, *(file.number() for file in self._files)]
        zero_pages = self._merged_with_zeros()
        values.append((values[_SHARING] + zero_pages) * PAGE_BYTES)
        self._at_rest = run == 0 and not any(values[1:_GAUGES]) and not zero_pages > 0
        if self._zero_pages is not None:
            values.append(zero_pages)
        if self._profit is not None:
            values.append(self._profit.number())
        if self._scanned is not None:
            now, before = self._scanned.number(), self._scanned_before
            values.append(NAN if before is None else growth(now, before) / length)
            self._scanned_before = now
            self._at_rest &= now == before
        self._last = values
        return values

    def _merged_with_zeros(self) -> float:
        if self._zero_pages is not None:
            return self._zero_pages.number()
        return NAN if self._uses_zero_pages is not None and self._uses_zero_pages.number() else 0


class Ksmd:
    """CPU of the kernel thread ksmd in percent of one CPU, from its run time in /proc/PID/schedstat (nanoseconds)."""

    title = "ksmd's CPU"
    names: tuple[str, ...] = ("ksmd_cpu_percent",)

    def __init__(self, roots: Roots, ksm: Ksm | None = None) -> None:
        self._ksm = ksm
        self._file = KernelFile(_process_called("ksmd", roots.host_proc) / "schedstat")
        self._before: int | None = None

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`; must be called after that of its `Ksm`, if it has one."""
        if self._ksm is not None and self._ksm.still and self._before is not None:
            return [0.0]
        now = int(self._file.read().split(None, 1)[0])
        before, self._before = self._before, now
        return [NAN if before is None else growth_within(now, before, most_seconds(length) * 1e9) / length / 1e7]


def _process_called(name: str, proc: Path) -> Path:
    for comm in proc.glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == name:
                return comm.parent
        except OSError:
            continue  # A process may end after it was listed.
    raise FileNotFoundError(f"no process {name} in {proc}")


SOURCE = FigureSource(
    (
        GroupMaker(Ksm.title, lambda watched: Ksm(watched.roots)),
        GroupMaker(Ksmd.title, lambda watched: Ksmd(watched.roots, watched.find(Ksm))),
    ),
    FIGURES,
    place=7,
)
