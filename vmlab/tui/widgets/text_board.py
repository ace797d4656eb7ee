"""Lines that a screen makes itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vmlab.tui.widgets.painted import Line, Painted


class TextBoard(Painted):
    """Shows lines of pieces as they are given."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._given: Sequence[Line] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Draw `lines`."""
        self._given = lines
        self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """What was given."""
        return self._given
