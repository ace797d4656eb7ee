"""Shares of CPU time, of all CPUs together and of each, from /proc/stat (proc(5)); the same as ``sar -u ALL``."""

from __future__ import annotations

from operator import sub

from vmlab.telemetry.host.counter import NAN, growth
from vmlab.telemetry.host.group import FigureSource, GroupMaker
from vmlab.telemetry.host.shown_figure import HostFigure
from vmlab.telemetry.source import KernelFile, Roots

STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
"""The columns of /proc/stat in order. The last two are part of ``user`` and ``nice`` already."""

FIGURES = (
    HostFigure("cpu_user_percent", "CPU user", "user", "CPU", headline=True, of_stages=True, chart="CPU", tone="one"),
    HostFigure(
        "cpu_system_percent", "CPU system", "system", "CPU", headline=True, of_stages=True, chart="CPU", tone="two"
    ),
    HostFigure(
        "cpu_iowait_percent",
        "CPU iowait",
        "iowait",
        "CPU",
        headline=True,
        of_stages=True,
        chart="CPU",
        tone="rest",
        idle=True,
    ),
    HostFigure("cpu_steal_percent", "CPU steal", "steal", "CPU", chart="CPU", tone="four"),
    HostFigure("cpu_idle_percent", "CPU idle", "idle", "CPU"),
    HostFigure(
        "cpu_nice_percent",
        "CPU nice and interrupts",
        "nice+irq",
        "",
        chart="CPU",
        tone="five",
        minor=True,
        added=("cpu_irq_percent", "cpu_softirq_percent"),
    ),
)

_ACTIVITY_NAMES = ("context_switches_per_second", "forks_per_second", "processes_running", "processes_blocked")
_WORDS = 1 + len(STATES)
_UNKNOWN = [NAN] * len(STATES)


class CpuShares:
    """CPU states in percent, plus context switches, forks and the processes that run or wait.

    The total is the sum over the CPUs that were online at both ends of the tick: the kernel's own total jumps when a
    CPU is plugged in or out.
    """

    title = "CPU time"

    def __init__(self, roots: Roots) -> None:
        self._file = KernelFile(roots.proc / "stat")
        self._cpus: list[bytes] = []
        self._ticks: list[int] = []
        self._switches = self._forks = -1
        self.names: tuple[str, ...] = ()
        self.count = 0
        """CPUs that are online."""
        self.busy_percent = NAN
        """The share of all CPUs that worked during the last tick: all states but idle, iowait and steal."""

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        text = self._file.read()
        # Between the line of all CPUs, which is not used, and the long one of interrupts.
        words = text[text.index(b"\n") : text.index(b"\nintr")].split()
        cpus = words[::_WORDS]
        del words[::_WORDS]
        ticks = list(map(int, words))
        grown = list(map(sub, ticks, self._ticks))
        if cpus == self._cpus and min(grown) >= 0:
            spans = [grown[at : at + len(STATES)] for at in range(0, len(grown), len(STATES))]
        else:
            spans = self._apart(cpus, ticks)
        self._ticks = ticks
        if cpus != self._cpus:
            self._cpus, self.count = cpus, len(cpus)
            self.names = self._named([cpu[3:].decode() for cpu in cpus])
        known = [span for span in spans if span]
        busy = _percent(list(map(sum, zip(*known, strict=True))) if known else [0] * len(STATES))
        self.busy_percent = 100 - busy[3] - busy[4] - busy[7]
        values = [*busy, float(self.count), *self._activity(text, length)]
        for span in spans:
            values += _percent(span) if span else _UNKNOWN
        return values

    def _apart(self, cpus: list[bytes], ticks: list[int]) -> list[list[int]]:
        """The growth of each CPU's counters, where CPUs came or went, or a counter went back; [] for a new CPU."""
        width = len(STATES)
        if len(ticks) != len(cpus) * width:
            raise ValueError("/proc/stat has another form than expected")
        before = {cpu: self._ticks[place * width :][:width] for place, cpu in enumerate(self._cpus)}
        return [
            [_forward(new, old) for new, old in zip(ticks[place * width :], before.get(cpu, ()), strict=False)]
            for place, cpu in enumerate(cpus)
        ]

    def _activity(self, text: bytes, length: float) -> tuple[float, ...]:
        # These lines follow the long line of interrupts, always in this order.
        words = text[text.index(b"\nctxt ") :].split(None, 11)
        switches, forks, running, blocked = int(words[1]), int(words[5]), int(words[7]), int(words[9])
        rates = (NAN, NAN)
        if self._switches >= 0:
            rates = (growth(switches, self._switches) / length, growth(forks, self._forks) / length)
        self._switches, self._forks = switches, forks
        return (*rates, float(running), float(blocked))

    @staticmethod
    def _named(cpus: list[str]) -> tuple[str, ...]:
        whole = [f"cpu_{state}_percent" for state in STATES]
        each = [f"cpu_{state}_percent[{cpu}]" for cpu in cpus for state in STATES]
        return (*whole, "cpu_count", *_ACTIVITY_NAMES, *each)


def _percent(grown: list[int]) -> list[float]:
    ticks = sum(grown) - grown[8] - grown[9]
    if not ticks:
        return _UNKNOWN
    scale = 100 / ticks
    return [value * scale for value in grown]


def _forward(new: int, old: int) -> int:
    """The growth, or 0 where it is negative: the kernel may take a little idle or iowait back (proc(5))."""
    grown = growth(new, old)
    return 0 if grown != grown else int(grown)


SOURCE = FigureSource((GroupMaker(CpuShares.title, lambda watched: CpuShares(watched.roots)),), FIGURES, place=1)
