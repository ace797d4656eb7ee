"""The kept results of experiments: what the program printed of a run beside its publication, and on which machine.

A record is ``{"machine": {…}, "host_cells": […], "beside": {…}}``. `beside` is exactly ``vmlab show RUN --reference
--json``, which has the run's accelerator, date and size; the others are from ``vmlab show RUN --json``: `host_cells`
has the axes of cells in which no virtual machine took part. Of a scenario without a publication `beside` has the parts
`scenario`, `run` and `tables` alone, which are of the same form in ``vmlab show RUN --json``. Of a run with the repeats
that claims take, `looks` has the numbers of repeats after which they were looked at. `virtualization` of `machine` is
what systemd-detect-virt(1) says of the host on which KVM was asked; ``qemu`` means that the host itself is emulated.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vmlab.analysis.reference.published import beside_reference
from vmlab.model.jsonable import jsonable
from vmlab.model.places import runs_folder
from vmlab.model.scenarios.reference import Reference
from vmlab.plan.scenario_file.loading import ScenarioFile, load, shipped_names
from vmlab.plan.terms import FOR_CLAIMS, ForClaims
from vmlab.store.archive import unpack
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE

FOLDER = Path(__file__).parents[2] / "docs" / "evidence" / "experiments"
CLAIMED = FOLDER / "claims"
"""Where the records are of runs with the repeats that claims take; they have no figures but those behind the claims."""
AGAIN = CLAIMED / "again"
"""Where those are that were asked the same on another day."""
KVM = CLAIMED / "kvm"
"""Where those of a host with KVM are."""
_MACHINE = ("cpu", "cpus", "memory_bytes", "kernel", "qemu", "libvirt", "disk")
"""What figures depend on; the name of a host is nobody's business."""
_RUN = ("id", "scenario", "size", "outcome", "started", "accelerator")
EMULATED_HOST = "qemu"
_LINES = 3
"""Down to this depth every value has a line of its own."""


@cache
def shipped(name: str) -> ScenarioFile:
    """A shipped scenario. Each is read once, as the page asks for them some three hundred times."""
    return load(name)


def record_of(document: Mapping[str, Any], beside: Mapping[str, Any] | None) -> dict[str, Any]:
    """The record of a run, from its documents ``vmlab.run/1`` and ``vmlab.reference/1``; None without a publication."""
    run = document["run"]
    if beside is None:
        beside = {
            "scenario": run["scenario"],
            "run": {key: run[key] for key in _RUN},
            "tables": document["tables"],
        }
    axes = [cell["axes"] for cell in document["cells"] if not cell["provision"]["guests"]]
    looks = (run["until"] or {}).get("looks")
    return {
        "machine": {key: run["host"][key] for key in _MACHINE if key in run["host"]},
        "host_cells": [one for place, one in enumerate(axes) if one not in axes[:place]],
        **({"looks": looks} if looks else {}),
        "beside": dict(beside),
    }


def of_claims(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what does not belong to its claims."""
    return {**record, "beside": {key: record["beside"][key] for key in ("scenario", "run", "claims")}}


def keep(name: str, record: Mapping[str, Any], folder: Path = FOLDER) -> None:
    """Write a record in place of the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(f"{_written(record, 0)}\n", encoding="utf-8")


def archive_of(name: str, folder: Path = CLAIMED) -> Path:
    """The archive (`vmlab export`) of the run that a record of claims is about."""
    return folder / f"{name}.vmlab"


def repeats_of(record: Mapping[str, Any]) -> ForClaims:
    """What `--repeats` was given for the run of a record of claims."""
    return FOR_CLAIMS[len(record.get("looks", ())) == 1]


def is_emulated(record: Mapping[str, Any]) -> bool:
    """Whether the host itself was emulated: what KVM does on it describes emulation, and counts for nothing."""
    return bool(record["machine"].get("virtualization") == EMULATED_HOST)


def day_of(record: Mapping[str, Any]) -> str:
    """The day on which the run of a record began, in UTC, as 2026-11-26."""
    return str(record["beside"]["run"]["started"])[:10]


def answers_in(archive: Path, reference: Reference | None = None) -> list[dict[str, Any]]:
    """What the run in an archive answers to its claims, or to those of a reference; it is added to the runs here."""
    with RunReader(runs_folder() / unpack(archive) / STORE) as reader:
        claims: list[dict[str, Any]] = json.loads(json.dumps(jsonable(beside_reference(reader, reference))))["claims"]
    return claims


def answer_anew() -> None:
    """Make the records of claims again from the archives of their runs, for the claims of today; nothing is run."""
    before = os.environ.get("XDG_STATE_HOME")
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        try:
            for folder in (CLAIMED, AGAIN, KVM):
                for name in shipped_names():
                    if (record := kept(name, folder)) is not None:
                        claims = answers_in(archive_of(name, folder), shipped(name).scenario.reference)
                        keep(name, {**record, "beside": {**record["beside"], "claims": claims}}, folder)
        finally:
            if before is None:
                del os.environ["XDG_STATE_HOME"]
            else:
                os.environ["XDG_STATE_HOME"] = before


def kept(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """The record of a scenario; None where it was not run yet."""
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _written(value: object, depth: int) -> str:
    """JSON with a line for each figure and claim, so that two records can be compared line by line."""
    if depth == _LINES or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = "  " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_written(one, depth + 1)}" for key, one in value.items()]
        opening, closing = "{}"
    else:
        parts = [_written(one, depth + 1) for one in value]
        opening, closing = "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{'  ' * depth}{closing}"
