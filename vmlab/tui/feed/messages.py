"""Messages of feeds to a screen; all of them are sent from threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(eq=False)
class HostSampled(Message, bubble=False):
    """The console itself read the host, and `domains`, its own guests."""

    sample: Sample
    domains: tuple[Domain, ...] = ()


@dataclass(eq=False)
class Remarked(Message, bubble=False):
    """A line for the log: something of the host cannot be read, or a store, after which the feed tries again."""

    level: str
    text: str


@dataclass(eq=False)
class OthersFound(Message, bubble=False):
    """Runs of other users or state folders that measure on this host, in `words`; empty where there is none."""

    words: str


@dataclass(eq=False)
class RunFound(Message, bubble=False):
    """A run lives, and its events follow. `intent` is what its scenario says, where it is known already; `planned` are
    the axis values of its cells, in order.

    Of a run of a fleet what follows is of one `host`, and RunFound comes again when another one was chosen.
    """

    run: str
    intent: Intent = field(default_factory=dict)
    planned: tuple[Axes, ...] = ()
    host: str = ""


@dataclass(eq=False)
class HostsArrived(Message, bubble=False):
    """What is new of all hosts of a fleet's run: their names, events of `HOST_EVENTS`, and the newest figures of each.

    With `anew` the events are all that there are.
    """

    run: str
    names: tuple[str, ...]
    events: tuple[Event, ...]
    figures: Mapping[str, Sequence[Sample]]
    anew: bool = False


@dataclass(eq=False)
class RunArrived(Message, bubble=False):
    """New events and samples of the run `run`, in order; `urgent` where there is more than progress."""

    run: str
    events: tuple[Event, ...]
    samples: tuple[Sample, ...]
    urgent: bool = True


@dataclass(eq=False)
class PastFound(Message, bubble=False):
    """How long workloads took in earlier runs of the same experiment."""

    run: str
    past: PastTimes


@dataclass(eq=False)
class RunLost(Message, bubble=False):
    """The run is over; `reason` is given where it has no last event."""

    run: str
    reason: str = ""
