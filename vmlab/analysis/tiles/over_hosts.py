"""Cells that all hosts of a fleet ran together, as one: sums over the hosts, and the worst of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from vmlab.analysis.figures.figure import WALL_CLOCK, WALL_SECONDS
from vmlab.analysis.record.fleet_hosts import HOST_AXIS
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import CellDocument, OverHostsDocument, RunDocument, TogetherDocument
from vmlab.analysis.statistics.descriptive import finite

ALL_HOSTS = "all"
"""The value of the axis host that stands for all of them; no host has that name."""


def together_documents(known: RunTimeline, cells: Sequence[CellDocument]) -> list[TogetherDocument]:
    """Those that have ended, in the order in which they did; [] for a run whose hosts did not run together."""
    numbered = {cell["cell"]: cell for cell in cells}
    found: list[TogetherDocument] = []
    for ended in known.together:
        own = [numbered[number] for number in ended.cells if number in numbered]
        if own:
            found.append(
                {
                    "cells": [cell["cell"] for cell in own],
                    "axes": {name: value for name, value in own[0]["axes"].items() if name != HOST_AXIS},
                    "repeat": own[0]["repeat"],
                    "outcome": ended.outcome,
                    "reason": ended.reason,
                    "start_skew_ms": finite(ended.skew_ms),
                    "skew_uncertainty_ms": finite(ended.skew_uncertainty_ms),
                    "starts_ms": dict(ended.starts_ms),
                    "over_hosts": list(_over_hosts(own)),
                }
            )
    return found


def _over_hosts(cells: Sequence[CellDocument]) -> Iterator[OverHostsDocument]:
    """Each metric of which every host has a figure. Rates add up over tiles and hosts; a host is as bad as its worst
    tile.
    """
    metrics = dict.fromkeys(
        (one["workload"], one["metric"], one["unit"]) for cell in cells for one in cell["over_tiles"]
    )
    for workload, metric, unit in metrics:
        of_hosts = [
            (str(cell["hypervisor"]), one)
            for cell in cells
            for one in cell["over_tiles"]
            if (one["workload"], one["metric"]) == (workload, metric)
        ]
        if len(of_hosts) == len(cells):
            more = of_hosts[0][1]["more_is_better"]
            worsts = [(one["worst"], host) for host, one in of_hosts if one["worst"] is not None]
            worst, host = (max, min)[bool(more)](worsts) if worsts else (None, None)
            total = sum(one["sum"] for _, one in of_hosts) if unit.endswith("/s") else None
            yield _over(workload, metric, unit, more, total, worst, host)
    walls = [(cell["wall_seconds"], str(cell["hypervisor"])) for cell in cells]
    known = [(seconds, host) for seconds, host in walls if seconds is not None]
    if len(known) == len(cells):
        yield _over(WALL_CLOCK, WALL_SECONDS, "s", False, None, *max(known))


def _over(
    workload: str,
    metric: str,
    unit: str,
    more_is_better: bool | None,
    total: float | None,
    worst: float | None,
    worst_host: str | None,
) -> OverHostsDocument:
    return {
        "workload": workload,
        "metric": metric,
        "unit": unit,
        "more_is_better": more_is_better,
        "sum": total,
        "worst": worst,
        "worst_host": worst_host,
    }


def cells_of_all_hosts(document: RunDocument) -> list[CellDocument]:
    """A cell for each that hosts ran together, which has rates as their sum and other figures as those of the worst
    host; its axis host is `ALL_HOSTS`.
    """
    numbered = {cell["cell"]: cell for cell in document["cells"]}
    return [_cell(numbered[one["cells"][0]], one) for one in document["together"] if one["cells"][0] in numbered]


def _cell(first: CellDocument, together: TogetherDocument) -> CellDocument:
    figures = [(one, one["worst"] if one["sum"] is None else one["sum"]) for one in together["over_hosts"]]
    taken = [(one, value) for one, value in figures if value is not None and one["metric"] != WALL_SECONDS]
    wall = next((value for one, value in figures if one["metric"] == WALL_SECONDS), None)
    changed = {
        "axes": {**together["axes"], HOST_AXIS: ALL_HOSTS},
        "hypervisor": None,
        "outcome": together["outcome"],
        "reasons": [together["reason"]] if together["reason"] else [],
        "wall_seconds": wall,
        "start_skew_ms": together["start_skew_ms"],
        "skew_uncertainty_ms": together["skew_uncertainty_ms"],
        "workloads": [],
        "measurements": [
            {
                "workload": one["workload"],
                "tile": 1,
                "guest": "",
                "metric": one["metric"],
                "value": value,
                "unit": one["unit"],
            }
            for one, value in taken
        ],
        "over_tiles": [
            {
                "workload": one["workload"],
                "metric": one["metric"],
                "unit": one["unit"],
                "tiles": 1,
                **dict.fromkeys(("mean", "worst", "best", "sum"), value),
                "sd": None,
                "cv": None,
                "jain": None,
                "more_is_better": one["more_is_better"],
                "overlap": None,
            }
            for one, value in taken
        ],
        "targets": [],
        "host": {},
        "bound_by": None,
        "disk_latency": None,
    }
    return cast(CellDocument, {**first, **changed})
