"""What the recorder asks of a group of figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Group(Protocol):
    """Figures that come from the same files. Its constructor raises OSError or ValueError where they are missing.

    The first reading after construction is a starting point; its values are NaN where they need a difference.
    """

    title: str
    """What is missing, for people, when the group is."""

    names: tuple[str, ...]
    """The names of the values in order; another object whenever they changed in the last reading."""

    def read(self, mono: float, length: float) -> Sequence[float]:
        """Values parallel to `names`, for the `length` seconds that ended at `mono`.

        Raises OSError or ValueError where the files have gone or make no sense.
        """
        ...
