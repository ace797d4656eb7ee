"""Every workload kind, found in the folder `kinds`: a new kind needs only a new file with a Workload in it."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import vmlab.workloads.kinds as package
from vmlab.workloads.contract import AnyWorkload, Workload


@cache
def kinds() -> dict[str, type[AnyWorkload]]:
    """Kind to class, in alphabetical order. Raises ImportError when two files claim the same kind."""
    found: dict[str, type[AnyWorkload]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for candidate in vars(module).values():
            if _is_kind(candidate, module.__name__):
                if candidate.kind in found:
                    raise ImportError(f"two workloads claim the kind {candidate.kind!r}")
                found[candidate.kind] = candidate
    return dict(sorted(found.items()))


def _is_kind(candidate: object, module: str) -> bool:
    return (
        isinstance(candidate, type)
        and issubclass(candidate, Workload)
        and candidate.__module__ == module
        and hasattr(candidate, "kind")
    )
