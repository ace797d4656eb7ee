"""Programs of tests, each a process of its own. `CLOCK` moves the clocks of one, before anything reads them."""

import os
import time
from collections.abc import Callable
from typing import Any

CLOCK = "FAKED_CLOCK"
"""By how many seconds both clocks of a process are ahead."""


def _ahead(clock: Callable[[], float], seconds: float) -> Callable[[], float]:
    return lambda: clock() + seconds


if CLOCK in os.environ:
    _time: Any = time
    for _name in ("time", "monotonic"):
        setattr(_time, _name, _ahead(getattr(time, _name), float(os.environ[CLOCK])))
