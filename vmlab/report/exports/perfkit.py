"""A run as the samples of PerfKitBenchmarker, one JSON object a line.

The fields are those of its `sample.Sample` and of its NewlineDelimitedJSONPublisher with ``--nocollapse_labels``:
metric, value, unit, metadata, timestamp, test, product_name, run_uri, sample_uri.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, BinaryIO

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.shape import RunDocument
from vmlab.report.exports.tidy import Exported, measured
from vmlab.report.exports.tidy_tables import moment_text

_PRODUCT = "vmlab"
_IN_SAMPLE = ("metric", "value", "unit")
_IN_URI = ("run", "cell", "workload", "tile", "metric")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "vmlab:sample")


def write_perfkit(runs: Sequence[Exported], file: BinaryIO) -> None:
    """Write a line for each measurement that has a value; its configuration is in ``metadata``.

    A URI is made of the place: run, cell, workload, tile and metric, of no workload the guest, and a number where
    several have the same. So no two samples have one, and a second export gives the same ones.
    """
    for run in runs:
        for sample in _samples(run, run.document()):
            file.write(json.dumps(sample, separators=(",", ":"), allow_nan=False).encode() + b"\n")


def _samples(run: Exported, document: RunDocument) -> Iterator[dict[str, Any]]:
    cells = {cell.cell: cell for cell in document.cells}
    ended, met = _timestamp(document), Counter[str]()
    for named in measured(run):
        metadata = {
            name: moment_text(value) if isinstance(value, datetime) else value
            for name, value in named.items()
            if value is not None and name not in _IN_SAMPLE
        }
        guest = [named["guest"]] if named["workload"] is None and named["guest"] is not None else []
        place = json.dumps([*(named[name] for name in _IN_URI), *guest])
        met[place] += 1
        if met[place] > 1:
            place = f"{place}#{met[place]}"
        yield {
            **{name: named[name] for name in _IN_SAMPLE},
            "metadata": {**metadata, **_configuration(document, cells.get(named["cell"]))},  # type: ignore[arg-type]
            "timestamp": ended,
            "test": document.run.scenario,
            "product_name": _PRODUCT,
            "run_uri": document.run.id,
            "sample_uri": str(uuid.uuid5(_NAMESPACE, place)),
        }


def _configuration(document: RunDocument, cell: CellDocument | None) -> dict[str, Any]:
    """The host, and what the cell is configured as: without them a figure cannot be compared."""
    if cell is None:
        return {"seed": document.run.seed, "host": document.run.host}
    own = (one.facts for one in document.run.hosts if one.name == cell.hypervisor)
    fleet = {} if cell.hypervisor is None else {"hypervisor": cell.hypervisor}
    return {
        "seed": document.run.seed,
        "host": next(own, document.run.host),
        **fleet,
        "settings": cell.settings,
        "provision": cell.provision.how,
    }


def _timestamp(document: RunDocument) -> float:
    """Seconds since the epoch at the end of the run, or at its beginning where it has not ended."""
    stamp = document.run.ended or document.run.started
    return 0.0 if stamp is None else datetime.fromisoformat(stamp).timestamp()
