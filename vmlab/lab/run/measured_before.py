"""What is recorded of a run before its runner works: its beginning alone, unless it was cut off and goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vmlab.analysis.record.fleet_hosts import decisive, differences
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.cell_event import CellEnded
from vmlab.model.errors import RefusedError
from vmlab.model.event import (
    RESUME,
    CommandReceived,
    Event,
    HostProbed,
    ImageReady,
)


class MeasuredBefore:
    """Events of a run, in order; `timeline` is the run as far as they show it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.timeline = timeline = RunTimeline.of(events)
        self.goes_on = any(isinstance(one, CommandReceived) and one.command == RESUME for one in events)
        self.decided = timeline.repeats_ended is not None
        """Whether it was decided that no repeat follows."""
        self._probed: HostProbed | None = None
        """The host, and below the images by name, with which the newest cell was measured."""
        self._then: dict[str, str] = {}
        self._now: dict[str, str] = {}
        probed = None
        for event in events:
            if isinstance(event, ImageReady):
                self._now[event.name] = event.image
            elif isinstance(event, HostProbed):
                probed = event
            elif isinstance(event, CellEnded) and event.cell in timeline.cells:
                self._probed, self._then = probed, dict(self._now)

    def demand_same(self, accelerator: str, host: dict[str, Any]) -> None:
        """Raise RefusedError where host or images are not those that cells were measured with before."""
        if self._probed is None:
            return
        hosts = {"then": decisive(self._probed.accelerator, self._probed.host), "now": decisive(accelerator, host)}
        found = differences(hosts)
        for name, image in self._then.items():
            if image != self._now[name]:
                found.append(f"image{f' {name}' if name else ''}: then {image}, now {self._now[name]}")
        if found:
            raise RefusedError(f"the host is not as it was, and its cells do not compare: {'; '.join(found)}")
