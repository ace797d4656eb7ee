"""Shares of CPU time, of all CPUs together and of each, from /proc/stat (proc(5)); the same as ``sar -u ALL``."""

from __future__ import annotations

import math
import time
from functools import partial
from operator import sub

from vmlab.system.processes import TICKS_PER_SECOND
from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, HostChart, HostFigure
from vmlab.telemetry.source import NAN, KernelFile, KeyedLines, Roots, growth_within, most_seconds

STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
"""The columns of /proc/stat in order. The last two are part of ``user`` and ``nice`` already."""

_CHART = HostChart("CPU", panel=1, top=100.0, page="% of all CPUs", track="CPU %")
_shown = partial(HostFigure, group="CPU", chart=_CHART)
FIGURES = (
    _shown("cpu_user_percent", "CPU user", "user", headline=True, of_stages=True),
    _shown("cpu_system_percent", "CPU system", "system", headline=True, of_stages=True, tone="two"),
    _shown("cpu_iowait_percent", "CPU iowait", "iowait", headline=True, of_stages=True, tone="rest", idle=True),
    _shown("cpu_steal_percent", "CPU steal", "steal", tone="four"),
    HostFigure("cpu_idle_percent", "CPU idle", "idle", "CPU"),
    HostFigure(
        *("cpu_nice_percent", "CPU nice and interrupts", "nice+irq", ""),
        chart=_CHART,
        tone="five",
        minor=True,
        added=("cpu_irq_percent", "cpu_softirq_percent"),
    ),
)

_ACTIVITY_NAMES = ("context_switches_per_second", "forks_per_second", "processes_running", "processes_blocked")
_ACTIVITY = KeyedLines((b"ctxt ", b"processes ", b"procs_running ", b"procs_blocked "))
_IN_ORDER = [b"ctxt", b"btime", b"processes", b"procs_running", b"procs_blocked"]
_MOST_EVENTS = 1e8
"""More context switches and forks than one CPU makes in a second."""
_WORDS = 1 + len(STATES)
_LEAST_COLUMNS = 4
_TAKEN_BACK = (STATES.index("idle"), STATES.index("iowait"))
_ROUNDED = 1
"""Ticks by which columns may differ, as each is rounded down by itself."""
_UNKNOWN = [NAN] * len(STATES)


class CpuShares:
    """CPU states in percent, plus context switches, forks and the processes that run or wait.

    The total is the sum over the CPUs whose growth is known: the kernel's own total jumps when a CPU is plugged in or
    out. A CPU's growth is unknown where its line is new, where it gained nothing, or more ticks than time passed, and
    where a column went back. Two columns may: the kernel takes idle and iowait back when it learns later which of the
    two a CPU was in (proc(5)); as in procps and sysstat such a column grew by 0, if the time allows the difference. A
    CPU that was taken off and on between two readings counts its idle time from 0 again, and is unknown. Columns that
    a kernel does not have (steal before 2.6.11, guest before 2.6.24, guest_nice before 2.6.33) are unknown.
    """

    title = "CPU time"

    def __init__(self, roots: Roots) -> None:
        self._file = KernelFile(roots.proc / "stat")
        self._cpus: list[bytes] = []
        self._ticks: list[int] = []
        self._columns = len(STATES)
        self._began = math.inf
        self._switches = self._forks = NAN
        self.names: tuple[str, ...] = ()
        self.count = 0
        """CPUs that are online."""
        self.busy_percent = NAN
        """The share of all CPUs that worked during the last tick: all states but idle, iowait and steal."""

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        began = time.monotonic()
        text = self._file.read()
        # This thread may have waited for a CPU between the tick's begin and the reading.
        passed = max(length, time.monotonic() - self._began)
        self._began = began
        most = most_seconds(passed) * TICKS_PER_SECOND
        cpus, ticks = self._parsed(text)
        spans = self._spans(cpus, ticks, most)
        self._ticks = ticks
        if cpus != self._cpus:
            self._cpus, self.count = cpus, len(cpus)
            self.names = self._named([cpu[3:].decode() for cpu in cpus])
        known = [span for span in spans if span]
        busy = self._percent(list(map(sum, zip(*known, strict=True))) if known else [])
        self.busy_percent = 100 - busy[3] - sum(share for share in (busy[4], busy[7]) if share == share)
        values = [*busy, float(self.count), *self._activity(text, length, passed)]
        for span in spans:
            values += self._percent(span)
        return values

    def _parsed(self, text: bytes) -> tuple[list[bytes], list[int]]:
        """The names of the CPUs, and the columns of all of them; those that this kernel does not have are 0."""
        # Between the line of all CPUs, which is not used, and the long one of interrupts.
        end = text.find(b"\nintr")
        words = text[text.find(b"\n") : end if end >= 0 else None].split()
        cpus = words[::_WORDS]
        if not cpus or cpus != self._cpus or len(words) != len(cpus) * _WORDS or self._columns != len(STATES):
            return self._parsed_by_line(text)
        del words[::_WORDS]
        return cpus, list(map(int, words))

    def _parsed_by_line(self, text: bytes) -> tuple[list[bytes], list[int]]:
        lines = [line.split() for line in text.splitlines()[1:] if line.startswith(b"cpu")]
        columns = min((len(line) - 1 for line in lines), default=0)
        if columns < _LEAST_COLUMNS or not all(word.isdigit() for line in lines for word in line[1:]):
            raise ValueError("/proc/stat has another form than expected")
        self._columns = min(columns, len(STATES))
        none = [0] * (len(STATES) - self._columns)
        ticks = [number for line in lines for number in [*map(int, line[1 : 1 + self._columns]), *none]]
        return [line[0] for line in lines], ticks

    def _spans(self, cpus: list[bytes], ticks: list[int], most: float) -> list[list[float]]:
        """The growth of each CPU's columns, of which none is larger than `most`; [] where it is not known."""
        width = len(STATES)
        grown: list[float] = list(map(sub, ticks, self._ticks))
        if cpus == self._cpus and min(grown) >= 0:
            spans = [grown[at : at + width] for at in range(0, len(grown), width)]
        else:
            before = {cpu: self._ticks[place * width :][:width] for place, cpu in enumerate(self._cpus)}
            spans = [
                _grown_apart(ticks[place * width :][:width], before.get(cpu), most) for place, cpu in enumerate(cpus)
            ]
        for place, span in enumerate(spans):
            if span and not 0 < sum(span) - span[8] - span[9] <= most:
                spans[place] = []
            elif span and (span[8] > span[0] + _ROUNDED or span[9] > span[1] + _ROUNDED):
                span[8] = span[9] = NAN
        return spans

    def _percent(self, span: list[float]) -> list[float]:
        if not span:
            return _UNKNOWN
        scale = 100 / sum(span[:8])
        percent = [value * scale for value in span]
        if self._columns < len(STATES):
            percent[self._columns :] = _UNKNOWN[self._columns :]
        return percent

    def _activity(self, text: bytes, length: float, passed: float) -> tuple[float, ...]:
        # These lines follow the long line of interrupts, on most kernels in this order.
        words = text[text.find(b"\nctxt ") :].split(None, 11)
        if words[::2][:5] == _IN_ORDER:
            switches, forks, running, blocked = map(float, (words[1], words[5], words[7], words[9]))
        else:
            switches, forks, running, blocked = _ACTIVITY.known(text)
        most = _MOST_EVENTS * self.count * passed
        rates = (
            growth_within(switches, self._switches, most) / length,
            growth_within(forks, self._forks, most) / length,
        )
        self._switches, self._forks = switches, forks
        return (*rates, running, blocked)

    @staticmethod
    def _named(cpus: list[str]) -> tuple[str, ...]:
        whole = [f"cpu_{state}_percent" for state in STATES]
        each = [f"cpu_{state}_percent[{cpu}]" for cpu in cpus for state in STATES]
        return (*whole, "cpu_count", *_ACTIVITY_NAMES, *each)


def _grown_apart(ticks: list[int], before: list[int] | None, most: float) -> list[float]:
    """The growth of one CPU's columns, where CPUs came or went, or a column went back; [] where it is not known."""
    if before is None:
        return []
    grown = []
    for column, (new, old) in enumerate(zip(ticks, before, strict=True)):
        taken_back = most if column in _TAKEN_BACK else _ROUNDED
        grown.append(0.0 if 0 < old - new <= taken_back else growth_within(new, old, most))
    return [] if any(value != value for value in grown) else grown


SOURCE = FigureSource((GroupMaker(CpuShares.title, lambda watched: CpuShares(watched.roots)),), FIGURES, place=1)
