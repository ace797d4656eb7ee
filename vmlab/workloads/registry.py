"""Every kind of workload, found by the entry points ``vmlab.workloads``: those of vmlab and of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from vmlab.model.run import RUN_TIME
from vmlab.system.entry_points import WORKLOADS, Entry, Loaded
from vmlab.workloads.contract import AnyWorkload, Workload, WorkloadParams
from vmlab.workloads.guarded import guarded
from vmlab.workloads.metrics import Metric


@cache
def kinds() -> Mapping[str, type[AnyWorkload]]:
    """Kind to class, vmlab's own first. One of another package that cannot be used is left out."""
    return Loaded(WORKLOADS, _checked)


def _checked(entry: Entry, found: object) -> type[AnyWorkload]:
    """The class of an entry point. Raises TypeError or ValueError where it is no kind that a scenario could use."""
    if not (isinstance(found, type) and issubclass(found, Workload)):
        raise TypeError(f"{entry.place} is no Workload")
    if getattr(found, "kind", None) != entry.name:
        raise ValueError(f"its kind is {getattr(found, 'kind', None)!r}, its entry point {entry.name!r}")
    if entry.is_own:
        return found
    _demand_complete(found)
    return guarded(found, entry)


def _demand_complete(kind: type[AnyWorkload]) -> None:
    """Raises TypeError or ValueError for what schema, plan and tables would stumble over."""
    missing = [name for name in ("sides", "Params", "summary", "metrics") if not hasattr(kind, name)]
    missing += sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise TypeError(f"it lacks {', '.join(missing)}")
    if kind.sides not in (1, 2):
        raise ValueError(f"sides is {kind.sides!r}, not 1 or 2")
    if not issubclass(kind.Params, WorkloadParams):
        raise TypeError("Params is no WorkloadParams")
    # Imported late: models of scenarios take a while, and vmlab's own kinds are not asked.
    from vmlab.model.scenarios.scenario import WorkloadEntry

    own = {field.alias or name for name, field in WorkloadEntry.model_fields.items()}
    if taken := sorted({field.alias or name for name, field in kind.Params.model_fields.items()} & own):
        raise ValueError(f"every workload has the key {taken[0]} already")
    if next(iter(kind.metrics), None) != RUN_TIME or not all(isinstance(one, Metric) for one in kind.metrics.values()):
        raise ValueError(f"its metrics do not begin with {RUN_TIME}: make them by with_run_time")
    if unknown := [name for name in (kind.throughput, kind.latency) if name not in kind.metrics]:
        raise ValueError(f"it declares no metric {unknown[0]}")
    # Fields that have no schema would break that of all kinds.
    kind.Params.model_json_schema()
