"""What the host did beside the lab while the workloads of a cell ran, and which of it makes the cell invalid."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace

from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.scenario import Allow, Limits
from vmlab.telemetry.cpu_speed import CAUSES, SPEED
from vmlab.telemetry.domains.neighbours import GUESTS_OF_HOST, cpu_list, disk_list
from vmlab.telemetry.host_counters import Between

TOLD_OTHER_PERCENT = 5.0
"""Other work above this share of the CPUs gives a notice, even below its limit."""
TOLD_PRESSURE_PERCENT = 1.0
"""The same for the share of time in which a task waited for memory."""
TOLD_SPEED_PERCENT = 90.0
"""CPUs below this share of their best speed give a notice, even above its limit."""
SUSPENDED_SECONDS = 0.1
"""From so long on a host that was suspended makes the cell invalid."""
JUDGED = (
    *("cpu_softirq_percent", "cpu_irq_percent", "swap_in_bytes_per_second", "swap_out_bytes_per_second"),
    *("cpu_outside_lab_percent", "cpu_steal_percent", "pressure_memory_some_percent", "tick_lateness_seconds", SPEED),
)
"""The metrics that are asked of the recorder while a run goes on; it keeps nothing else in memory."""
_STEADY_SPAN = 3.0
"""Seconds for which the CPUs have to have been fast to be called steady."""
_LOOK_SECONDS = 0.5
_FEW_SECONDS = 5.0
"""A cell that is shorter may have no sample, or one alone, whose lateness says nothing."""
_NAN = math.nan


async def until_steady(extremes: Callable[[str, float, float], tuple[float, float]], most: float) -> float:
    """Return when no CPU was slower than `TOLD_SPEED_PERCENT` of its best in the last seconds, or after `most` seconds.

    Gives the lowest speed of a CPU in these seconds, in percent; NaN where the speed is not traced. `extremes` is that
    of the recorder.
    """
    end = time.monotonic() + most
    while True:
        now = time.monotonic()
        lowest, _ = extremes(SPEED, now - _STEADY_SPAN, now)
        if not lowest < TOLD_SPEED_PERCENT or now >= end:
            return lowest
        await asyncio.sleep(min(_LOOK_SECONDS, end - now))


async def until_quiet(disturbing: Callable[[], Awaitable[str]], most: float) -> tuple[float, str]:
    """Return as soon as nothing is `disturbing`, or after `most` seconds.

    Gives how many seconds that took, and what disturbed at first; nothing where the host was quiet at once.
    """
    began, first = time.monotonic(), ""
    while why := await disturbing():
        first = first or why
        if (waited := time.monotonic() - began) >= most:
            return waited, first
        await asyncio.sleep(_LOOK_SECONDS)
    return time.monotonic() - began, first


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence on what disturbed a cell; `breaks` if the cell is invalid for it, else it is only reported."""

    text: str
    breaks: bool


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Means over the span in which the workloads ran; NaN for what is not known.

    `other_percent` and `steal_percent` are shares of all CPUs. Softirq and the kernel's threads are left out of the
    first: most of what they do then they do for the lab (loop devices, writeback, network), and nothing tells the rest
    apart; other work that makes them busy is busy itself. `pressure_percent` is the share of time in which a task on
    the host waited for memory, `swapped_bytes` went to and came from swap, `lateness` is how many seconds after its
    deadline a sample was taken. `speed_percent` is the CPUs' mean speed relative to the best that each had in the run,
    `speeds` the lowest and the highest of one CPU in one tick.
    """

    other_percent: float = _NAN
    steal_percent: float = _NAN
    pressure_percent: float = _NAN
    swapped_bytes: float = _NAN
    lateness: float = _NAN
    between: Between = field(default_factory=Between)
    speed_percent: float = _NAN
    speeds: tuple[float, float] = (_NAN, _NAN)

    @classmethod
    def of(
        cls,
        mean: Callable[[str, float, float], float],
        span: tuple[float, float],
        between: Between,
        extremes: Callable[[str, float, float], tuple[float, float]],
    ) -> Disturbance:
        """From the recorder's samples in `span` of the monotonic clock, and the counters around it."""
        began, ended = span

        def over(name: str) -> float:
            return mean(name, began, ended)

        kernel = over("cpu_softirq_percent") + over("cpu_irq_percent") + between.kernel_threads_percent
        swapped = over("swap_in_bytes_per_second") + over("swap_out_bytes_per_second")
        return cls(
            other_percent=_at_least_0(over("cpu_outside_lab_percent") - kernel),
            steal_percent=over("cpu_steal_percent"),
            pressure_percent=over("pressure_memory_some_percent"),
            swapped_bytes=swapped * (ended - began),
            lateness=over("tick_lateness_seconds"),
            speed_percent=over(SPEED),
            speeds=extremes(SPEED, began, ended),
            between=between,
        )

    def findings(self, limits: Limits, allow: Allow, seconds: float | None) -> Iterator[Finding]:
        """One for each rule that was broken, or nearly. `seconds` is how long the workloads ran."""
        if (asleep := self.between.suspended) >= SUSPENDED_SECONDS:
            # No noise: the lab stood still itself.
            yield Finding(f"the host was suspended for {asleep:.3g} s while the workloads ran", breaks=True)
        for finding in self._all(limits, allow, seconds):
            yield replace(finding, breaks=finding.breaks and not allow.noise)

    def _all(self, limits: Limits, allow: Allow, seconds: float | None) -> Iterator[Finding]:
        long = (seconds or 0.0) > _FEW_SECONDS
        if long and math.isnan(self.other_percent):
            yield Finding("no host metrics were recorded while the workloads ran", breaks=False)
        yield from self._of_cpus(limits)
        yield from self._of_neighbours_disks()
        yield from self._of_memory(limits, allow)
        if long and self.lateness > limits.tick_lateness:
            yield Finding(
                f"samples of the host were taken {self.lateness * 1e3:.0f} ms late; "
                f"the limit is {limits.tick_lateness * 1e3:.0f} ms",
                breaks=True,
            )

    def _of_cpus(self, limits: Limits) -> Iterator[Finding]:
        other = f"the host's other work took {self.other_percent:.0f} % of the CPUs{self._of_neighbours()}"
        if self.other_percent > limits.host_other_percent:
            yield Finding(f"{other}; the limit is {limits.host_other_percent:.0f} %", breaks=True)
        elif self.other_percent > TOLD_OTHER_PERCENT:
            yield Finding(f"{other} while the workloads ran", breaks=False)
        if self.steal_percent > limits.host_steal_percent:
            steal = f"steal: the hypervisor that this host runs on took {self.steal_percent:.0f} % of the CPUs"
            yield Finding(f"{steal}; the limit is {limits.host_steal_percent:.0f} %", breaks=True)
        yield from self._of_speed(limits)
        if self.between.heat:
            yield Finding(f"the processor became too hot and slowed down (events: {self.between.heat})", breaks=True)
        if (held := self.between.held_back_percent) > limits.held_back_percent:
            quota = f"a CPU quota held the lab back for {held:.1f} % of the time"
            yield Finding(f"{quota}; the limit is {limits.held_back_percent:g} %", breaks=True)

    def _of_neighbours(self) -> str:
        """What the busiest guests of the host took of the CPUs, in brackets; empty without such guests."""
        told = cpu_list(self.between.neighbours)
        return f" ({GUESTS_OF_HOST}: {told})" if told else ""

    def _of_neighbours_disks(self) -> Iterator[Finding]:
        if told := disk_list(self.between.neighbours):
            yield Finding(f"{GUESTS_OF_HOST} used disks while the workloads ran: {told}", breaks=False)

    def _of_speed(self, limits: Limits) -> Iterator[Finding]:
        low, high = self.speeds
        speed = f"the CPUs ran at {self.speed_percent:.0f} % of their best speed on average"
        if math.isfinite(low) and math.isfinite(high):
            speed += f", between {low:.0f} and {high:.0f} %"
        if self.speed_percent < limits.host_speed_percent:
            yield Finding(f"{speed}; the limit is {limits.host_speed_percent:.0f} %", breaks=True)
        elif self.speed_percent < TOLD_SPEED_PERCENT:
            stolen = "" if math.isnan(self.steal_percent) else f"; steal was {self.steal_percent:.0f} %"
            yield Finding(f"{speed}: {CAUSES}{stolen}", breaks=False)

    def _of_memory(self, limits: Limits, allow: Allow) -> Iterator[Finding]:
        """Where memory is overcommitted on purpose, its shortage is what is measured, and is only reported."""
        if self.between.caches_dropped:
            yield Finding("the host's caches were emptied while the workloads ran (drop_caches)", breaks=True)
        meant = allow.memory_overcommit
        if self.swapped_bytes > limits.swapped_bytes:
            swapped = f"the host swapped {format_bytes(int(self.swapped_bytes))} while the workloads ran"
            yield Finding(f"{swapped}; the limit is {format_bytes(limits.swapped_bytes)}", breaks=not meant)
        waited = f"tasks on the host waited for memory for {self.pressure_percent:.0f} % of the time"
        if self.pressure_percent > limits.memory_pressure_percent:
            yield Finding(f"{waited}; the limit is {limits.memory_pressure_percent:g} %", breaks=not meant)
        elif self.pressure_percent > TOLD_PRESSURE_PERCENT:
            yield Finding(waited, breaks=False)


def _at_least_0(percent: float) -> float:
    """A difference of two clocks may be a little below 0; NaN stays NaN."""
    return 0.0 if percent < 0 else percent
