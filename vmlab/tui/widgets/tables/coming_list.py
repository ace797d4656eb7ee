"""The cells to come of the run that goes on, with keys for the one under the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from vmlab.model.cell_event import CellStarted
from vmlab.model.event import CellsReplanned, Event
from vmlab.model.event_fields import CellToCome
from vmlab.model.run import other_mode
from vmlab.report.listing import NONE_TO_COME, coming_rows
from vmlab.tui.state.asked import AskedChanges
from vmlab.tui.widgets.row_list import RowList

_TONES = {"changed": "warning", "skipped": "quiet"}
_ASKING = "The run is asked what is to come."


class ComingList(RowList):
    """Adds each change to what is asked for, and posts `Asked`.

    The list is as the run tells it, and changes when the run has changed it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "cache", "Cache", tooltip="This cell: cache writeback or none"),
        Binding("plus,equals_sign", "tiles(1)", "Tiles", key_display="+-", tooltip="This cell: one tile more"),
        Binding("minus", "tiles(-1)", "Fewer tiles", key_display="-", show=False, tooltip="This cell: one tile fewer"),
        Binding("s", "skip", "Skip", tooltip="This cell: leave it out; it stays in the list"),
        Binding("p", "put_back", "Put back", tooltip="This cell: as it was planned"),
        Binding("enter", "choose", "Skip or put back", show=False, tooltip="This cell: skip it, or put it back"),
        Binding("escape", "close", "Close", tooltip="Close the list"),
    ]

    class Asked(Message):
        """Another change was added to what is asked for."""

    class Closed(Message):
        """The list is to be closed."""

    def __init__(self, asked: AskedChanges, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cells: dict[str, CellToCome] = {}
        self._asked = asked

    def on_mount(self) -> None:
        """Until the run has answered there is a sentence."""
        self.tell(_ASKING)

    def tell(self, text: str) -> None:
        """Show a sentence in place of the list."""
        self._cells = {}
        self.show((), (), (text,))

    def fill(self, cells: Sequence[CellToCome]) -> None:
        """Show the cells to come."""
        heading, *rows = coming_rows(cells)
        self._cells = {str(one["cell"]): one for one in cells}
        tones = [_TONES.get(one["state"], "plain") for one in cells]
        lines = [((f" {row}", tone),) for row, tone in zip(rows, tones, strict=True)]
        above = ((f" {heading}", "quiet"),) if cells else ()
        self.show(above, zip(self._cells, lines, strict=True), (NONE_TO_COME,))

    def is_outdated_by(self, events: Iterable[Event]) -> bool:
        """Whether after `events` other cells are to come."""
        return any(isinstance(event, CellStarted | CellsReplanned) for event in events)

    @property
    def _cell(self) -> CellToCome | None:
        """The cell under the cursor; where there is none, that is said."""
        if self.key is None:
            self.notify("no cell is listed here", severity="warning")
            return None
        return self._cells[self.key]

    def _ask(self, cell: CellToCome | None, **change: Any) -> None:
        if cell is not None:
            self._asked.add({**change, "cell": int(cell["cell"])})
            self.post_message(self.Asked())

    def _value(self, cell: CellToCome, axis: str) -> Any:
        asked = self._asked.value(axis, int(cell["cell"]))
        return cell["axes"].get(axis) if asked is None else asked

    def action_cache(self) -> None:
        """Cache writeback where it is none, none otherwise."""
        if (cell := self._cell) is not None:
            self._ask(cell, cache=other_mode(self._value(cell, "cache")))

    def action_tiles(self, step: int) -> None:
        """One tile more or fewer."""
        if (cell := self._cell) is None:
            return
        count = int(self._value(cell, "tiles") or 1) + step
        if count < 1:
            self.notify("a cell has at least one tile", severity="warning")
        else:
            self._ask(cell, tiles=count)

    def action_skip(self) -> None:
        """Leave it out."""
        self._ask(self._cell, skip=True)

    def action_put_back(self) -> None:
        """As it was planned."""
        self._ask(self._cell, as_planned=True)

    def action_choose(self) -> None:
        """Skip a cell that is to run; put back one that is not."""
        if (cell := self._cell) is not None:
            self._ask(cell, **{"as_planned" if cell["state"] == "skipped" else "skip": True})

    def action_close(self) -> None:
        """Close the list."""
        self.post_message(self.Closed())
