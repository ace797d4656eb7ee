"""Messages of feeds to a screen; all of them are sent from threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from vmlab.model.domain import Domain
    from vmlab.model.event import Event
    from vmlab.model.sample import Sample
    from vmlab.tui.state.run_state import PastTimes
    from vmlab.tui.state.views import Axes, Intent

PostMessage = Callable[[Message], object]
"""Takes a message from any thread."""


class HostSampled(Message, bubble=False):
    """The console itself read the host, and `domains`, its own guests."""

    def __init__(self, sample: Sample, domains: tuple[Domain, ...] = ()) -> None:
        super().__init__()
        self.sample = sample
        self.domains = domains


class Remarked(Message, bubble=False):
    """A line for the log: something of the host cannot be read, or a store, after which the feed tries again."""

    def __init__(self, level: str, text: str) -> None:
        super().__init__()
        self.level = level
        self.text = text


class OthersFound(Message, bubble=False):
    """Runs of other users or state folders that measure on this host, in `words`; empty where there is none."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words


class RunFound(Message, bubble=False):
    """A run lives, and its events follow. `intent` is what its scenario says, where it is known already; `planned` are
    the axis values of its cells, in order.

    Of a run of a fleet what follows is of one `host`, and RunFound comes again when another one was chosen.
    """

    def __init__(self, run: str, intent: Intent | None = None, planned: tuple[Axes, ...] = (), host: str = "") -> None:
        super().__init__()
        self.planned = planned
        self.run = run
        self.intent = intent or {}
        self.host = host


class HostsArrived(Message, bubble=False):
    """What is new of all hosts of a fleet's run: their names, events of `HOST_EVENTS`, and the newest figures of each.

    With `anew` the events are all that there are.
    """

    def __init__(
        self,
        run: str,
        names: tuple[str, ...],
        events: tuple[Event, ...],
        figures: Mapping[str, Sequence[Sample]],
        *,
        anew: bool = False,
    ) -> None:
        super().__init__()
        self.run = run
        self.names = names
        self.events = events
        self.figures = figures
        self.anew = anew


class RunArrived(Message, bubble=False):
    """New events and samples of the run `run`, in order; `urgent` where there is more than progress."""

    def __init__(
        self, run: str, events: tuple[Event, ...], samples: tuple[Sample, ...], *, urgent: bool = True
    ) -> None:
        super().__init__()
        self.urgent = urgent
        self.run = run
        self.events = events
        self.samples = samples


class PastFound(Message, bubble=False):
    """How long workloads took in earlier runs of the same experiment."""

    def __init__(self, run: str, past: PastTimes) -> None:
        super().__init__()
        self.run = run
        self.past = past


class RunLost(Message, bubble=False):
    """The run is over; `reason` is given where it has no last event."""

    def __init__(self, run: str, reason: str = "") -> None:
        super().__init__()
        self.run = run
        self.reason = reason
