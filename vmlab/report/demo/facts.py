"""What the chapters of a demo may tell of its recording. Every figure comes from the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import delivered
from vmlab.analysis.tiles.throughput import tiles_of
from vmlab.analysis.tiles.tiles_carried import nearest
from vmlab.model.axes import axis_word
from vmlab.model.errors import UsageError
from vmlab.model.ordered import EMULATED_DISK, ORDERED_HOST, size_words
from vmlab.model.run import EMULATED
from vmlab.report.run.target_text import missed_words, of_tiles
from vmlab.report.run.tiles_text import brief, climb_of
from vmlab.report.words import NOT_MEASURED, host_number, number, plural
from vmlab.store.reader import RunReader

_DELIVERS = {True: "delivers", False: "misses", None: "does not count"}


@dataclass(frozen=True, slots=True)
class SwitchFacts:
    """The first switch of a cell's cache mode.

    `pause` is the longest that any guest may have stood still, such as ``6.21 ms``. `busy_before` says how busy the
    disk was before.
    """

    before: str
    after: str
    pause: str
    busy_before: str


@dataclass(frozen=True, slots=True)
class CellFacts:
    """One cell: its guests and cache mode, and how busy CPUs and disk were while its workloads ran.

    Figures have their units. `other` is the share of the CPUs that other work than the lab's took. `nearest` is the
    target of which most was taken, with its limit, and `delivers` says whether all were met. `switch` is None for a
    cell whose mode stayed as it was.
    """

    tiles: str
    guests: int
    cache: str
    cpu: str
    disk: str
    other: str
    delivers: str
    nearest: str
    switch: SwitchFacts | None


@dataclass(frozen=True, slots=True)
class Facts:
    """A recording: when and where it was made, its `cells` by number, and the command that does the same.

    `guests` says how they ran: ``emulated (TCG)`` or ``on KVM``; `place` what of the host is not its own, such as ``an
    emulated disk hdd-7200``. `carried` is how many tiles each cache mode carries, and what ran out first.
    """

    date: str
    host: str
    guests: str
    cells: Mapping[int, CellFacts]
    place: str
    carried: str
    command: str


def facts_of(reader: RunReader) -> Facts:
    """What the store tells. Raises StoreError for a damaged one, UsageError for one without a host or a cell."""
    document = run_document(reader)
    run, host = document.run, document.run.host
    if not host or not document.cells:
        raise UsageError(f"{reader.path}: the run was over before its first cell")
    return Facts(
        date=(run.started or NOT_MEASURED)[:10],
        host=f"{host.get('cpus')} x {host.get('cpu')}",
        guests="emulated (TCG)" if run.accelerator == EMULATED else f"on {(run.accelerator or '?').upper()}",
        cells={cell.cell: _cell(cell) for cell in document.cells},
        place=_place(document),
        carried=_carried(document),
        command=_command(document),
    )


def _cell(cell: CellDocument) -> CellFacts:
    evidence = cell.bound_by.evidence if cell.bound_by else {}
    target = nearest([cell])
    return CellFacts(
        tiles=plural(tiles_of(cell), "tile"),
        guests=cell.provision.guests or 0,
        cache=_axis(cell, "cache"),
        cpu=_percent(evidence, "cpu_busy_percent"),
        disk=_percent(evidence, "disk_busy_percent"),
        other=_percent(evidence, "cpu_other_work_percent"),
        delivers=_DELIVERS[delivered(cell)],
        nearest=NOT_MEASURED if target is None else missed_words(target, of_tiles=of_tiles([cell])),
        switch=_switch(cell),
    )


def _axis(cell: CellDocument, name: str) -> str:
    value = cell.axes.get(name)
    return NOT_MEASURED if value is None else axis_word(value)


def _percent(evidence: Mapping[str, float], name: str) -> str:
    if name not in evidence:
        return NOT_MEASURED
    return _share(evidence[name])


def _share(share: float) -> str:
    return f"{share:.0f} %" if share >= 10 else f"{host_number(share)} %"


def _switch(cell: CellDocument) -> SwitchFacts | None:
    first = next((one for one in cell.switches if one.what == "cache"), None)
    if first is None:
        return None
    pauses = [pause for pause in first.pauses_ms.values() if pause is not None]
    return SwitchFacts(
        before=first.before,
        after=first.after,
        pause=f"{number(max(pauses))} ms" if pauses else NOT_MEASURED,
        busy_before=_disk_busy_before(cell),
    )


def _disk_busy_before(cell: CellDocument) -> str:
    spans = cell.spans
    found = spans[0].host.get("disk_util_percent") if spans else None
    return NOT_MEASURED if found is None else _share(found.mean)


def _place(document: RunDocument) -> str:
    """What guests have in place of the host's own, or that they have the host's own."""
    host: Any = document.run.host
    disk, ordered = host.get("disk") or {}, host.get("ordered") or {}
    found = [f"an {EMULATED_DISK} {disk['profile']}"] if disk.get("emulated") else []
    found += [f"an {ORDERED_HOST} of {size_words(ordered['cpus'], ordered['memory_bytes'])}"] if ordered else []
    return " and ".join(found) or "the host's own disk and memory"


def _carried(document: RunDocument) -> str:
    climb = climb_of(document)
    return "nothing is known of how many tiles the host carries" if climb is None else brief(climb)


def _command(document: RunDocument) -> str:
    """The command that makes such a run, without the switch."""
    run = document.run
    axes = [
        f" --{name} {','.join(dict.fromkeys(axis_word(cell.axes[name]) for cell in document.cells))}"
        for name in ("tiles", "cache")
        if all(name in cell.axes for cell in document.cells)
    ]
    return f"vmlab run {run.scenario} --size {run.size}{''.join(axes)}"
