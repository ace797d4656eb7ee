"""The host's figures in each stage of workloads that have stages, such as the tests of a suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmlab.analysis.cell_shape import StageDocument
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.host_means import host_during
from vmlab.model.cell_event import WorkloadProgressed
from vmlab.model.event import CellWithdrawn
from vmlab.model.run import DONE, SETTLING
from vmlab.store.reader import RunReader

Signs = Mapping[int, Sequence[WorkloadProgressed]]
"""Progress events that name a stage, by cell, in order."""
_AFTER = (SETTLING, DONE)
"""Stages that the lab itself names after a client has ended. The workload's own last stage ends there."""


def signs_of_stages(reader: RunReader) -> Signs:
    """All progress events of a run that name a stage, of cells that count. Raises StoreError for a damaged store."""
    found: dict[int, list[WorkloadProgressed]] = {}
    for _, event in reader.events(kinds=(WorkloadProgressed, CellWithdrawn)):
        if isinstance(event, CellWithdrawn):
            found.pop(event.cell, None)
        elif isinstance(event, WorkloadProgressed) and event.stage:
            found.setdefault(event.cell, []).append(event)
    return found


def stages_of(reader: RunReader, cell: CellTimeline, signs: Sequence[WorkloadProgressed]) -> Iterator[StageDocument]:
    """The stages of each workload of a cell.

    A stage lasts from its first event to that of the next one, the last to the client's end.
    Raises StoreError for a damaged store.
    """
    ends = {(ended.workload, ended.tile): ended.mono for ended in cell.ended_workloads}
    whole = cell.execution
    for key in dict.fromkeys((sign.workload, sign.tile) for sign in signs):
        own = [sign for sign in signs if (sign.workload, sign.tile) == key]
        first = {sign.stage: sign.mono for sign in reversed(own)}
        began = sorted(first.items(), key=lambda one: one[1])
        last = ends.get(key, whole[1] if whole else own[-1].mono)
        until = [mono for _, mono in began[1:]] + [last]
        for (stage, since), end in zip(began, until, strict=True):
            if stage in _AFTER:
                break
            yield StageDocument(
                workload=key[0],
                tile=key[1],
                stage=stage,
                seconds=max(0.0, end - since),
                host=host_during(reader, since, end) if end > since else {},
            )
