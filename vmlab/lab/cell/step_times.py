"""How long the steps of a cell take, for `vmlab show --phases`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vmlab.model.event import Event, StepEnded


@contextmanager
def timed_step(
    emit: Callable[[Event], object], cell: int, part: str, step: str, tile: int = 0, place: str = ""
) -> Iterator[None]:
    """Emits the time that the block took, also where it fails."""
    began = time.monotonic()
    try:
        yield
    finally:
        emit(StepEnded(cell=cell, part=part, step=step, seconds=time.monotonic() - began, tile=tile, place=place))
