"""Every kind of workload, found by the entry points ``vmlab.workloads``: those of vmlab and of other packages.

Faults of a kind of another package fail its own workload and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from vmlab.model.errors import VmlabError, WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.system.entry_points import WORKLOADS, Entry, Loaded, said
from vmlab.workloads.metrics import Metric
from vmlab.workloads.workload_steps import AnyWorkload, Workload, WorkloadParams

_STEPS = ("stored", "staged_by", "stage", "rehearse", "prepare", "client", "progress")
_AFTER = ("settle", "collect", "renew", "figures", "tool_time", "readings")
_OF_CLASS = ("declared", "left_out", "is_timed")
F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
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
    return _guarded(found, entry)


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


def _guarded(kind: type[AnyWorkload], entry: Entry) -> type[AnyWorkload]:
    """A subclass of `kind`, each step of which raises WorkloadError in place of what nobody expects of a workload.

    What it stages depends on its package's code, so that another version of it makes other snapshots.
    """

    @contextlib.contextmanager
    def naming(step: str) -> Iterator[None]:
        try:
            yield
        except (VmlabError, OSError):
            raise
        except Exception as error:
            raise WorkloadError(f"{entry.words}: {step} failed: {said(error)}") from error

    def checked(name: str, step: F) -> F:
        @functools.wraps(step)
        def call(*arguments: Any, **named: Any) -> Any:
            with naming(name):
                return step(*arguments, **named)

        @functools.wraps(step)
        async def wait(*arguments: Any, **named: Any) -> Any:
            with naming(name):
                return await step(*arguments, **named)

        return wait if inspect.iscoroutinefunction(step) else call  # type: ignore[return-value]

    names = ("__init__", "footprint", *_STEPS, *_AFTER)
    body: dict[str, Any] = {name: checked(name, getattr(kind, name)) for name in names}
    body |= {name: classmethod(checked(name, getattr(kind, name).__func__)) for name in _OF_CLASS}
    staged_by = body["staged_by"]

    @functools.wraps(kind.staged_by)
    def staged_by_code(workload: AnyWorkload) -> dict[str, Any]:
        return {**staged_by(workload), "package": entry.package, "code": _digest(entry)}

    if kind.stage is not Workload.stage or kind.rehearse is not Workload.rehearse:
        body["staged_by"] = staged_by_code
    body |= {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), body)


@functools.cache
def _digest(entry: Entry) -> str:
    """SHA-256 over the modules of the package that a kind is in."""
    top = import_module(entry.place.partition(":")[0].partition(".")[0])
    places = [Path(one) for one in getattr(top, "__path__", ())] or [Path(str(top.__file__))]
    files = sorted(file for place in places for file in (place.rglob("*.py") if place.is_dir() else (place,)))
    digest = hashlib.sha256(entry.version.encode())
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
