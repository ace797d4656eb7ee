"""What the stored scenario says about axes and about the layout of its results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vmlab.analysis.shape import AxisDocument, TableDocument
from vmlab.model.errors import StoreError

WORKLOADS = "workloads"
"""The side of a table that is the scenario's workloads instead of an axis."""


def axes_of(texts: Mapping[str, str]) -> dict[str, AxisDocument]:
    """The axes of the document ``scenario`` among a run's texts, in its order; {} where there is none.

    Raises StoreError where the document is not what the lab writes.
    """
    try:
        return {
            name: {"values": list(axis["values"]), "label": str(axis.get("label") or "")}
            for name, axis in (_scenario(texts).get("axes") or {}).items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"the stored scenario has axes of an unknown form: {error}") from error


def table_of(texts: Mapping[str, str], axes: Mapping[str, AxisDocument]) -> TableDocument | None:
    """The layout that the scenario asks for, else one chosen from the axes; None without any axis.

    Chosen are: rows of workloads, and columns of the axis ``cache``, or else of the first axis that is varied.
    """
    said = _scenario(texts).get("table")
    if isinstance(said, dict) and "columns" in said:
        return {
            "columns": str(said["columns"]),
            "rows": str(said.get("rows") or WORKLOADS),
            "baseline": said.get("baseline"),
        }
    varied = [name for name, axis in axes.items() if len(axis["values"]) > 1] or list(axes)
    if not varied:
        return None
    return {"columns": "cache" if "cache" in varied else varied[0], "rows": WORKLOADS, "baseline": None}


def _scenario(texts: Mapping[str, str]) -> dict[str, Any]:
    try:
        body = json.loads(texts.get("scenario", "{}"))
    except ValueError as error:
        raise StoreError(f"the stored scenario is not JSON: {error}") from error
    return body if isinstance(body, dict) else {}
