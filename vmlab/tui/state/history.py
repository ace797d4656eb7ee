"""The last samples of host and guests, kept as they came; charts and tables share them."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from itertools import islice

from vmlab.model.sample import Sample
from vmlab.telemetry.host.shown_figure import Terms

KEPT = 600
"""How many samples are kept: ten minutes at one a second."""
HOUR = 3600
"""The same where the host is watched for long."""


class History:
    """Samples in order of time. `version` grows with every change, so that a viewer knows what it has drawn."""

    def __init__(self, kept: int = KEPT) -> None:
        self._samples: deque[Sample] = deque(maxlen=kept)
        self.version = 0
        self._drawn: dict[Terms, deque[float]] = {}
        self.taken = 0
        """How many samples were ever taken: the time axis, so that columns stay where they are as time goes on."""

    def take(self, sample: Sample) -> None:
        """Add the newest sample. One that is older than the newest there starts a new history."""
        if self._samples and sample.mono < self._samples[-1].mono:
            self.clear()
        # As bare numbers: an hour of a host with many CPUs and guests takes a fourth of what objects would.
        self._samples.append(sample._replace(values=array("d", sample.values)))
        for terms, values in self._drawn.items():
            values.append(value_of(sample, terms))
        self.version += 1
        self.taken += 1

    def clear(self) -> None:
        """Forget everything, as when a recording is played from an earlier moment."""
        self._samples.clear()
        self._drawn.clear()
        self.version += 1

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def last(self) -> Sample | None:
        """The newest sample; None where there is none."""
        return self._samples[-1] if self._samples else None

    def newest(self, count: int) -> list[Sample]:
        """The newest `count` samples, oldest first."""
        return list(islice(self._samples, max(0, len(self._samples) - count), None))

    @property
    def interval(self) -> float:
        """Seconds between samples, by the newest sample; 1 where there is none."""
        last = self.last
        return last.length if last is not None and last.length > 0 else 1.0

    def newer_than(self, moment: float) -> int:
        """How many samples were taken after `moment` of the monotonic clock."""
        count = 0
        for sample in reversed(self._samples):
            if sample.mono <= moment:
                break
            count += 1
        return count

    def values(self, terms: Terms, count: int) -> list[float]:
        """The newest `count` sums of `terms`, oldest first; NaN where a sample lacks one of them.

        A sum is worked out once, when its sample comes, however often it is drawn.
        """
        values = self._drawn.get(terms)
        if values is None:
            values = deque((value_of(sample, terms) for sample in self._samples), maxlen=self._samples.maxlen)
            self._drawn[terms] = values
        return list(islice(values, max(0, len(values) - count), None))


def never_moved(values: Iterable[float]) -> bool:
    """Whether a value was nothing all the time, or unknown."""
    return all(value == 0 or value != value for value in values)


def value_of(sample: Sample, terms: Terms) -> float:
    """The sum of `terms` in one sample; NaN where it lacks one of them."""
    return sum([sample.get(name) * sign for name, sign in terms])
