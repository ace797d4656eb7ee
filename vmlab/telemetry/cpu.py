"""Shares of CPU time, of all CPUs together and of each, from /proc/stat (proc(5)); the same as ``sar -u ALL``."""

from __future__ import annotations

from vmlab.telemetry.counter import NAN, growth
from vmlab.telemetry.figure import HostFigure
from vmlab.telemetry.source import KernelFile, Roots

STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
"""The columns of /proc/stat in order. The last two are part of ``user`` and ``nice`` already."""

FIGURES = (
    HostFigure("cpu_user_percent", "CPU user", "user", "CPU", headline=True, chart="CPU", tone="one"),
    HostFigure("cpu_system_percent", "CPU system", "system", "CPU", headline=True, chart="CPU", tone="two"),
    HostFigure("cpu_iowait_percent", "CPU iowait", "iowait", "CPU", headline=True, chart="CPU", tone="three"),
    HostFigure("cpu_steal_percent", "CPU steal", "steal", "CPU", chart="CPU", tone="four"),
    HostFigure("cpu_idle_percent", "CPU idle", "idle", "CPU"),
    HostFigure(
        "cpu_nice_percent",
        "CPU nice and interrupts",
        "nice+irq",
        "",
        chart="CPU",
        tone="rest",
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
        self._before: dict[bytes, list[int]] = {}
        self._switches = self._forks = -1
        self.names: tuple[str, ...] = ()
        self.count = 0
        """CPUs that are online."""
        self.busy_percent = NAN
        """The share of all CPUs that worked during the last tick: all states but idle, iowait and steal."""

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        text = self._file.read()
        words = text[: text.index(b"\nintr")].split()
        cpus = words[_WORDS::_WORDS]
        if cpus != self._cpus:
            self._cpus, self.count = cpus, len(cpus)
            self.names = self._named([cpu[3:].decode() for cpu in cpus])
        places = range(_WORDS + 1, len(words), _WORDS)
        now = {cpu: list(map(int, words[at : at + len(STATES)])) for cpu, at in zip(cpus, places, strict=True)}
        each, whole = self._shares(now)
        self._before = now
        busy = _percent(whole)
        self.busy_percent = 100 - busy[3] - busy[4] - busy[7]
        return [*busy, float(self.count), *self._activity(text, length), *each]

    def _shares(self, now: dict[bytes, list[int]]) -> tuple[list[float], list[float]]:
        """Percent of each CPU, one after the other, and the ticks of all together."""
        each: list[float] = []
        together: list[list[float]] = []
        for cpu, counters in now.items():
            before = self._before.get(cpu)
            if before is None:
                each += _UNKNOWN
                continue
            grown: list[float] = [n - o for n, o in zip(counters, before, strict=True)]
            if min(grown) < 0:
                grown = [_forward(n, o) for n, o in zip(counters, before, strict=True)]
            together.append(grown)
            each += _percent(grown)
        return each, [sum(column) for column in zip(*together, strict=True)] or [0.0] * len(STATES)

    def _activity(self, text: bytes, length: float) -> list[float]:
        # These lines follow the long line of interrupts, always in this order.
        words = text[text.index(b"\nctxt ") :].split(None, 11)
        switches, forks, running, blocked = int(words[1]), int(words[5]), int(words[7]), int(words[9])
        rates = [NAN, NAN]
        if self._switches >= 0:
            rates = [growth(switches, self._switches) / length, growth(forks, self._forks) / length]
        self._switches, self._forks = switches, forks
        return [*rates, float(running), float(blocked)]

    @staticmethod
    def _named(cpus: list[str]) -> tuple[str, ...]:
        whole = [f"cpu_{state}_percent" for state in STATES]
        each = [f"cpu_{state}_percent[{cpu}]" for cpu in cpus for state in STATES]
        return (*whole, "cpu_count", *_ACTIVITY_NAMES, *each)


def _percent(grown: list[float]) -> list[float]:
    ticks = sum(grown) - grown[8] - grown[9]
    if not ticks:
        return _UNKNOWN
    scale = 100 / ticks
    return [value * scale for value in grown]


def _forward(new: int, old: int) -> float:
    """The growth, or 0 where it is negative: the kernel may take a little idle or iowait back (proc(5))."""
    grown = growth(new, old)
    return 0.0 if grown != grown else grown
