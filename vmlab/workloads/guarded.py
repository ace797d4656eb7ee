"""A kind of another package, whose faults fail its own workload and nothing else."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from vmlab.model.errors import VmlabError, WorkloadError
from vmlab.system.entry_points import Entry, said
from vmlab.workloads.contract import AnyWorkload, Workload

_STEPS = ("stored", "staged_by", "stage", "rehearse", "prepare", "client", "progress")
_AFTER = ("settle", "collect", "renew", "figures", "tool_time", "readings")
_OF_CLASS = ("left_out", "is_timed")
F = TypeVar("F", bound=Callable[..., Any])


def guarded(kind: type[AnyWorkload], entry: Entry) -> type[AnyWorkload]:
    """A subclass of `kind`, each step of which raises WorkloadError in place of what nobody expects of a workload.

    What it stages depends on its package's code, so that another version of it makes other snapshots.
    """

    def checked(name: str, step: F) -> F:
        def failed(error: Exception) -> WorkloadError:
            return WorkloadError(f"{entry.words}: {name} failed: {said(error)}")

        @functools.wraps(step)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return step(*arguments, **named)
            except (VmlabError, OSError):
                raise
            except Exception as error:
                raise failed(error) from error

        @functools.wraps(step)
        async def wait(*arguments: Any, **named: Any) -> Any:
            try:
                return await step(*arguments, **named)
            except (VmlabError, OSError):
                raise
            except Exception as error:
                raise failed(error) from error

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
