"""What is recorded of a run before its runner works: its beginning alone, unless it was cut off and goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vmlab.analysis.record.fleet_hosts import decisive, differences
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.errors import RefusedError
from vmlab.model.event import Event, ImageReady
from vmlab.model.run import Outcome


class MeasuredBefore:
    """Events of a run, in order; `outcomes` are those of the cells that have ended, by number."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        timeline = RunTimeline.of(events)
        self._probed = timeline.probed
        ends = {number: cell.end for number, cell in timeline.cells.items()}
        self.outcomes = {number: Outcome(end.outcome) for number, end in ends.items() if end is not None}
        self._images = dict.fromkeys(one.image for one in events if isinstance(one, ImageReady) and not one.name)

    @property
    def goes_on(self) -> bool:
        """Whether a runner worked before this one."""
        return self._probed is not None

    def demand_same(self, accelerator: str, host: dict[str, Any]) -> None:
        """Raise RefusedError where the host or the image is not the one that cells were measured with before."""
        if self._probed is None:
            return
        hosts = {"then": decisive(self._probed.accelerator, self._probed.host), "now": decisive(accelerator, host)}
        found = differences(hosts)
        if len(self._images) > 1:
            then, *_, now = self._images
            found.append(f"image: then {then}, now {now}")
        if found:
            raise RefusedError(f"the host is not as it was, and its cells do not compare: {'; '.join(found)}")
