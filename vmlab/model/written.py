"""The units in which figures are written for people, where these are not the units in which they are kept."""

from __future__ import annotations

from typing import NamedTuple


class Written(NamedTuple):
    """How figures of a unit are written: each is multiplied by `factor`, and has `unit` behind it or in its heading."""

    unit: str
    factor: float = 1.0


_WRITTEN = {"B": Written("MiB", 2**-20), "B/s": Written("MB/s", 1e-6), "1": Written("")}


def written(unit: str) -> Written:
    """How figures in `unit` are written."""
    return _WRITTEN.get(unit, Written(unit))
