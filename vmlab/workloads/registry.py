"""Every workload kind, found in the folders `kinds` and `suites`: a new kind is a new file with a Workload in it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache

import vmlab.workloads
from vmlab.workloads.contract import AnyWorkload, Workload


@cache
def kinds() -> dict[str, type[AnyWorkload]]:
    """Kind to class, in alphabetical order. Raises ImportError when two files claim the same kind."""
    found: dict[str, type[AnyWorkload]] = {}
    for name in _modules():
        module = importlib.import_module(name)
        for candidate in vars(module).values():
            if _is_kind(candidate, module.__name__):
                if candidate.kind in found:
                    raise ImportError(f"two workloads claim the kind {candidate.kind!r}")
                found[candidate.kind] = candidate
    return dict(sorted(found.items()))


def _modules() -> Iterator[str]:
    for folder in ("kinds", "suites"):
        paths = [f"{path}/{folder}" for path in vmlab.workloads.__path__]
        yield from (f"vmlab.workloads.{folder}.{info.name}" for info in pkgutil.iter_modules(paths) if not info.ispkg)


def _is_kind(candidate: object, module: str) -> bool:
    return (
        isinstance(candidate, type)
        and issubclass(candidate, Workload)
        and candidate.__module__ == module
        and hasattr(candidate, "kind")
    )
