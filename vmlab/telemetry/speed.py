"""Each CPU's relative speed, from how long `speed_probe.c` took for the same work on it."""

from __future__ import annotations


class SpeedTrace:
    """Relative speed of each CPU over the interval of a sample.

    The speed of CPU c over an interval is the mean of best(c) / t over its probes in that interval. t is the duration
    of a probe, best(c) the shortest one on c since the run began. 1 is the best seen; a CPU without probes has none.
    """

    def __init__(self) -> None:
        self._best: dict[int, int] = {}
        self._since: dict[int, list[int]] = {}

    def feed(self, line: str) -> None:
        """Take a line of the probe, `CLOCK_MONOTONIC_ns CPU duration_ns`; other lines are left out."""
        words = line.split()
        if len(words) != 3 or not all(word.isdecimal() for word in words) or int(words[2]) == 0:
            return
        cpu, duration = int(words[1]), int(words[2])
        self._best[cpu] = min(duration, self._best.get(cpu, duration))
        self._since.setdefault(cpu, []).append(duration)

    def take(self) -> dict[int, float]:
        """The relative speed of each CPU since the last call, in (0, 1]."""
        since, self._since = self._since, {}
        return {cpu: sum(self._best[cpu] / took for took in times) / len(times) for cpu, times in since.items()}
