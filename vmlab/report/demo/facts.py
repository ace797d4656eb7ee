"""What the chapters of a demo may tell of its recording. Every figure comes from the record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vmlab.analysis.cell_shape import CellDocument, SwitchDocument
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import delivered
from vmlab.analysis.tiles.throughput import tiles_of
from vmlab.model.axes import axis_word
from vmlab.model.errors import UsageError
from vmlab.model.run import EMULATED
from vmlab.report.run.tiles_text import brief, climb_of
from vmlab.report.words import NOT_MEASURED, plural
from vmlab.store.reader import RunReader

_DID = {True: "kept {} limits", False: "missed {} limits", None: "did not count"}


@dataclass(frozen=True, slots=True)
class CellFacts:
    """One cell: its guests and cache mode, and what it `did`: whether it kept all limits.

    `switch` is the first one of its cache mode, None where that stayed as it was; `pause` is no less than the longest
    that any guest may have stood still then, such as ``7 ms``.
    """

    tiles: str
    guests: int
    cache: str
    did: str
    switch: SwitchDocument | None
    pause: str

    @property
    def verdict(self) -> str:
        """``2 tiles missed their limits``."""
        return f"{self.tiles} {self.did}"


@dataclass(frozen=True, slots=True)
class Facts:
    """A recording: when and where it was made, its `cells` by number, and the command that does the same.

    `guests` says how they ran: ``emulated (TCG)`` or ``on KVM``; `emulated` what of guests and disk was, or that
    neither was. `carried` is how many tiles each cache mode carries, and what ran out first.
    """

    date: str
    host: str
    guests: str
    emulated: str
    cells: Mapping[int, CellFacts]
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
        emulated=_emulated(run.accelerator == EMULATED, host),
        cells={cell.cell: _cell(cell) for cell in document.cells},
        carried=_carried(document),
        command=_command(document),
    )


def _cell(cell: CellDocument) -> CellFacts:
    cache = cell.axes.get("cache")
    switch = next((one for one in cell.switches if one.what == "cache"), None)
    pauses = [pause for pause in switch.pauses_ms.values() if pause is not None] if switch else []
    return CellFacts(
        tiles=plural(tiles_of(cell), "tile"),
        guests=cell.provision.guests or 0,
        cache=NOT_MEASURED if cache is None else axis_word(cache),
        did=_DID[delivered(cell)].format("its" if tiles_of(cell) == 1 else "their"),
        switch=switch,
        pause=f"{math.ceil(max(pauses))} ms" if pauses else NOT_MEASURED,
    )


def _emulated(guests: bool, host: Mapping[str, Any]) -> str:
    disk = bool((host.get("disk") or {}).get("emulated"))
    found = " and ".join(word for word, is_so in (("machines", guests), ("disk", disk)) if is_so)
    return f"{found} emulated" if found else "on KVM and the host's own disk"


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
