"""What the chapters of a demo may tell of its recording. Every figure comes from the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.analysis.compare import compare, sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.figure import RUN_TIME, WALL_SECONDS
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.axes import axis_word
from vmlab.model.errors import UsageError
from vmlab.model.event import CacheProved, CacheSwitched
from vmlab.model.quantities import format_seconds
from vmlab.report.words import NOT_MEASURED, host_number, number, plural
from vmlab.store.reader import RunReader


@dataclass(frozen=True, slots=True)
class SwitchFacts:
    """The first switch of a cell's cache mode.

    `pause` is the longest that any guest may have stood still, such as ``6.21 ms``. `files` are those that guests have
    open after it, and `direct` so many of these pass the host's cache.
    """

    before: str
    after: str
    pause: str
    files: int
    direct: int


@dataclass(frozen=True, slots=True)
class CellFacts:
    """One cell: its guests and cache mode, how long its workloads took, how busy CPUs and disk were meanwhile.

    Figures have their units. `other` is the share of the CPUs that other work than the lab's took. `switch` is None for
    a cell whose mode stayed as it was.
    """

    guests: int
    cache: str
    seconds: str
    cpu: str
    disk: str
    other: str
    switch: SwitchFacts | None


@dataclass(frozen=True, slots=True)
class Facts:
    """A recording: when and where it was made, its `cells` by number, and the command that does the same.

    `guests` says how they ran: ``emulated (TCG)`` or ``on KVM``. `verdict` is what is proven of the cache modes.
    """

    date: str
    host: str
    guests: str
    cpus: int
    cells: Mapping[int, CellFacts]
    verdict: str
    command: str


def facts_of(reader: RunReader) -> Facts:
    """What the store tells. Raises StoreError for a damaged one, UsageError for one without a host or a cell."""
    document, proofs = run_document(reader), _proofs_after_switch(reader)
    run, host = document["run"], document["run"]["host"]
    if not host or not document["cells"]:
        raise UsageError(f"{reader.path}: the run was over before its first cell")
    return Facts(
        date=(run["started"] or NOT_MEASURED)[:10],
        host=f"{host.get('cpus')} x {host.get('cpu')}",
        guests="emulated (TCG)" if run["accelerator"] == "tcg" else f"on {(run['accelerator'] or '?').upper()}",
        cpus=int(host.get("cpus") or 0),
        cells={cell["cell"]: _cell(cell, proofs.get(cell["cell"], ())) for cell in document["cells"]},
        verdict=_verdict(document),
        command=_command(document),
    )


def _cell(cell: CellDocument, proofs: Sequence[CacheProved]) -> CellFacts:
    evidence = cell["bound_by"]["evidence"] if cell["bound_by"] else {}
    return CellFacts(
        guests=cell["provision"]["guests"],
        cache=_axis(cell, "cache"),
        seconds=NOT_MEASURED if cell["wall_seconds"] is None else format_seconds(cell["wall_seconds"]),
        cpu=_percent(evidence, "cpu_busy_percent"),
        disk=_percent(evidence, "disk_busy_percent"),
        other=_percent(evidence, "cpu_other_work_percent"),
        switch=_switch(cell, proofs),
    )


def _axis(cell: CellDocument, name: str) -> str:
    value = cell["axes"].get(name)
    return NOT_MEASURED if value is None else axis_word(value)


def _percent(evidence: Mapping[str, float], name: str) -> str:
    if name not in evidence:
        return NOT_MEASURED
    share = evidence[name]
    return f"{share:.0f} %" if share >= 10 else f"{host_number(share)} %"


def _proofs_after_switch(reader: RunReader) -> Mapping[int, Sequence[CacheProved]]:
    """The proofs of each cell's files that came after its first switch and before a second one."""
    found: dict[int, list[CacheProved]] = {}
    switches: Counter[int] = Counter()
    for _, event in reader.events(kinds=(CacheSwitched, CacheProved)):
        if isinstance(event, CacheSwitched):
            switches[event.cell] += 1
        elif isinstance(event, CacheProved) and switches[event.cell] == 1:
            found.setdefault(event.cell, []).append(event)
    return found


def _switch(cell: CellDocument, proofs: Sequence[CacheProved]) -> SwitchFacts | None:
    if not cell["switches"]:
        return None
    first = cell["switches"][0]
    pauses = [pause for pause in first["pauses_ms"].values() if pause is not None]
    return SwitchFacts(
        before=first["before"],
        after=first["after"],
        pause=f"{number(max(pauses))} ms" if pauses else NOT_MEASURED,
        files=len(proofs),
        direct=sum(proof.o_direct for proof in proofs),
    )


def _verdict(document: RunDocument) -> str:
    """How many differences of run times between the sides of the run are proven, and why not more."""
    try:
        comparison = compare(sides_by_axis(document))
    except UsageError as error:
        return str(error)
    timed = [row.differences[0] for row in comparison.rows if row.metric in (RUN_TIME, WALL_SECONDS)]
    found = [one for one in timed if one.percent is not None]
    proven = f"{sum(one.proven for one in found)} of {plural(len(found), 'difference')} in run time proven"
    widest = max((one for one in found if one.obstacle), key=lambda one: one.family, default=None)
    why = "" if widest is None else f"; {widest.obstacle}: it takes {plural(widest.needed or 0, 'repeat')} at least"
    return f"{' against '.join(comparison.labels[:2])}: {proven}{why}"


def _command(document: RunDocument) -> str:
    """The command that makes such a run, without the switch."""
    run: Any = document["run"]
    axes = [
        f" --{name} {','.join(dict.fromkeys(axis_word(cell['axes'][name]) for cell in document['cells']))}"
        for name in ("tiles", "cache")
        if all(name in cell["axes"] for cell in document["cells"])
    ]
    return f"vmlab run {run['scenario']} --size {run['size']}{''.join(axes)}"
