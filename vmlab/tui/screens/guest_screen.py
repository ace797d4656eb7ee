"""One of the lab's guests in full while a run goes on: its charts, and the workloads that it works at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vmlab.tui.screens.domain_screen import Found, OneGuestScreen
from vmlab.tui.state.charts import guest_charts
from vmlab.tui.widgets.glyphs import glyphs_for, tone_of
from vmlab.tui.widgets.painted import Line
from vmlab.tui.widgets.tables.guest_cards import workload_line

if TYPE_CHECKING:
    from vmlab.tui.state.history import History
    from vmlab.tui.state.views import GuestView


class GuestScreen(OneGuestScreen):
    """Follows the guest that `guests` has under `name`, which is its name in samples."""

    def __init__(
        self,
        name: str,
        history: Callable[[], History],
        guests: Callable[[], Sequence[GuestView]],
        now: Callable[[], float],
    ) -> None:
        """`now` gives the moment that is shown, on the monotonic clock."""
        super().__init__(name, history)
        self._guests, self._now = guests, now

    def names(self) -> list[str]:
        """The guests of the cell."""
        return [guest.key for guest in self._guests()]

    def found(self) -> Found | None:
        """Who it is, and how far its workloads are."""
        guest = next((guest for guest in self._guests() if guest.key == self._name), None)
        if guest is None:
            return None
        glyphs = glyphs_for()
        known = [
            f"tile {guest.tile}",
            guest.role,
            f"{guest.vcpus} vCPU{'s' * (guest.vcpus > 1)}" if guest.vcpus else "",
        ]
        state = f"  {glyphs.sign(guest.state)} {guest.state}"
        who: list[Line] = [
            [(f" {guest.guest}  ", "title"), (", ".join(filter(None, known)), "plain"), (state, tone_of(guest.state))]
        ]
        width = self.size.width - 1
        below: list[Line] = [workload_line(one, self._now(), width, glyphs) for one in guest.workloads]
        if guest.serves:
            below.append([(f"serves {', '.join(guest.serves)}", "quiet")])
        return Found(who, guest_charts(guest.key, guest.vcpus), below or [[("no workload runs in it", "quiet")]])
