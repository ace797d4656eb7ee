"""The newest figures of each host of a fleet, from the store that has those of all."""

from __future__ import annotations

from vmlab.model.sample import Sample, SampleNames
from vmlab.store.reader import RunReader
from vmlab.store.samples import series

_NAMES = ("cpu_idle_percent", "cpu_iowait_percent", "disk_util_percent")
"""What the gauges of a host are made of."""
_LAYOUT = SampleNames.of(_NAMES)


def figures(reader: RunReader, since: float = float("-inf")) -> list[Sample]:
    """What the gauges of one host need, of each tick from `since` on (monotonic seconds): samples of these values."""
    known = {name: series(reader, name, since) for name in _NAMES}
    by_name = {name: dict(zip(one.mono, one.values, strict=True)) for name, one in known.items()}
    moments = sorted({mono for one in known.values() for mono in one.mono})
    nan = float("nan")
    return [Sample(0.0, mono, 1.0, 0.0, _LAYOUT, [by_name[name].get(mono, nan) for name in _NAMES]) for mono in moments]
