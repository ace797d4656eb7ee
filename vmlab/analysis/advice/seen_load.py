"""The load of a copy as QEMU counted it, in the middle of one cell."""

from __future__ import annotations

from dataclasses import dataclass

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.coverage import instances_of
from vmlab.model.run import RUN_TIME
from vmlab.model.sample import Sample
from vmlab.plan.copied_guest.copied_load import WORDS
from vmlab.store.reader import RunReader
from vmlab.store.samples import read_samples

_BEGINS, _ENDS = 0.75, 0.25
"""Before the end of a client, as parts of fio's own time: a client starts fio, and ends after it, in unknown times."""


@dataclass(frozen=True, slots=True)
class SeenLoad:
    """What QEMU counted in some seconds of one cell, by way: requests, and the seconds that they took together."""

    seconds: float
    requests: dict[str, float]
    waited: dict[str, float]


def seen_load(reader: RunReader, cell: CellDocument, known: CellTimeline) -> SeenLoad | None:
    """In the middle of its workloads; None where they did not run."""
    own = {one.workload: one.value for one in cell.measurements if one.metric == RUN_TIME and one.value is not None}
    ends = {one.workload: one.span[1] for one in known.workloads.values() if one.span is not None}
    if not ends or ends.keys() != own.keys():
        return None
    since = max(end - _BEGINS * own[name] for name, end in ends.items())
    until = min(end - _ENDS * own[name] for name, end in ends.items())
    samples = list(read_samples(reader, since, until)) if until > since else []
    seconds, requests, waited = 0.0, dict.fromkeys(WORDS, 0.0), dict.fromkeys(WORDS, 0.0)
    for sample in samples:
        begin, end = sample.span_of("guest_data_disk_reads_per_second")
        part = min(end, until) - max(begin, since)
        figures = _figures(sample)
        if part <= 0 or not figures or not all(one == one for pair in figures.values() for one in pair):
            continue
        seconds += part
        for way, (rate, await_ms) in figures.items():
            requests[way] += rate * part
            waited[way] += rate * part * await_ms / 1000
    return SeenLoad(seconds, requests, waited) if seconds > 0 else None


def _figures(sample: Sample) -> dict[str, tuple[float, float]]:
    """Rate and mean milliseconds of each way, of the data disks of all guests; {} of a sample that has none.

    What else a guest does on its root disk is none of the load.
    """
    found: dict[str, tuple[float, float]] = {}
    for way, word in WORDS.items():
        names = instances_of([sample], f"guest_data_disk_{way}_per_second")
        pairs = [(sample.get(name), sample.get(_await(name, way, word))) for name in names]
        if not pairs:
            return {}
        rate = sum(one for one, _ in pairs)
        found[way] = rate, sum(one * each for one, each in pairs) / rate if rate > 0 else rate
    return found


def _await(name: str, way: str, word: str) -> str:
    return name.replace(f"{way}_per_second", f"{word}_await_ms", 1)
