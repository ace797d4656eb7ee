"""The newest lines of the event log; the last one is always in sight unless the user scrolled up."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from vmlab.system.text_width import width_of, wrapped
from vmlab.tui.state.views import LogLine
from vmlab.tui.widgets.painted import Line, Shown

_TONES = {"info": "plain", "good": "good", "warning": "warning", "error": "bad"}
_STAMP, _LEAST = 9, 20
"""Columns of the time of day, and of a text at least."""


class EventLog(Shown[Sequence[LogLine]]):
    """Time of day and text, in the colour of the line's level; what has no room goes on below."""

    can_focus = True
    shown: Sequence[LogLine] = ()
    _following = True
    _end = 0
    """How far it could be scrolled when it was last drawn."""

    def show(self, shown: Sequence[LogLine]) -> None:
        """Draw `shown`, where it is another log, with its newest line in sight."""
        if shown != self.shown:
            super().show(shown)
            self.call_after_refresh(self._to_end)

    def on_resize(self) -> None:
        """The end stays in sight also where fewer rows are left."""
        super().on_resize()
        self.call_after_refresh(self._to_end)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The user scrolls away from the end, or back to it."""
        super().watch_scroll_y(old_value, new_value)
        # Where it glides to counts, and the end of then: a line may come on the way.
        self._following = self.scroll_target_y >= min(self._end, self.max_scroll_y)

    def _to_end(self) -> None:
        self._end = self.max_scroll_y
        if self._following:
            # Forced, as Textual does not scroll where the scroll bar is yet to be laid out.
            self.scroll_end(animate=False, immediate=True, force=True)

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """One line each, or more."""
        room = max(_LEAST, width - _STAMP - 1)
        for one in self.shown:
            stamp = time.strftime("%H:%M:%S", time.localtime(one.wall))
            texts = [one.text] if width_of(one.text) <= room else wrapped(one.text, room)
            for text in texts:
                yield [(f"{stamp:<{_STAMP}}", "quiet"), (text, _TONES.get(one.level, "plain"))]
                stamp = ""
