"""The interface of a group of figures to the recorder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Group(Protocol):
    """Figures that come from the same files. The constructor raises OSError or ValueError where the files are missing.

    The first reading after construction is a starting point: values that need a difference are NaN.
    """

    title: str
    """What is reported to be missing when the group cannot be read."""

    names: tuple[str, ...]
    """The names of the values in order; a new object whenever the last reading changed them."""

    def read(self, mono: float, length: float) -> Sequence[float]:
        """Values parallel to `names`, for the `length` seconds that ended at `mono`.

        Raises OSError or ValueError where the files have disappeared or cannot be parsed.
        """
        ...
