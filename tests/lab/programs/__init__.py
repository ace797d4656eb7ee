"""Programs of tests, each a process of its own. `CLOCK` moves the clocks of one, before anything reads them.

A faked runner logs in nowhere and makes no network: it loads none of what does, a fifth of its time to start.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

CLOCK = "FAKED_CLOCK"
"""By how many seconds both clocks of a process are ahead."""


def _ahead(clock: Callable[[], float], seconds: float) -> Callable[[], float]:
    return lambda: clock() + seconds


if CLOCK in os.environ:
    _time: Any = time
    for _name in ("time", "monotonic"):
        setattr(_time, _name, _ahead(getattr(time, _name), float(os.environ[CLOCK])))


class _Absent(MetaPathFinder, Loader):
    """Modules of which each name is a class that nothing is an instance of, and which cannot be called."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        is_absent = name.partition(".")[0] in ("asyncssh", "pyroute2")
        return ModuleSpec(name, self, is_package=True) if is_absent else None

    def exec_module(self, module: ModuleType) -> None:
        def named(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (Exception,), {"__init__": _called, "__class_getitem__": lambda _class, _of: object})

        module.__getattr__ = named  # type: ignore[method-assign]


def _called(absent: object, *_words: object, **_options: object) -> None:
    raise AssertionError(f"a faked run needs {type(absent).__name__}")


if "tests.lab.programs.faked_runner" in sys.orig_argv:
    sys.meta_path.insert(0, _Absent())
