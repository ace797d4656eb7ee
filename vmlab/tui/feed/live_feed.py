"""Follows a live run's store, or reads the host, in threads of their own, whose messages go to a screen.

A slow disk never delays a key press.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from vmlab.lab.process.measuring_runs import host_queue
from vmlab.model.cell_event import WorkloadProgressed
from vmlab.model.errors import VmlabError
from vmlab.model.event import (
    Event,
    RunEnded,
    RunStarted,
)
from vmlab.model.places import runs_folder
from vmlab.model.sample import Sample, SampleNames
from vmlab.store.life import is_alive, is_recording
from vmlab.store.reader import NotBegunError, RunReader
from vmlab.store.runs import STORE, run_folders
from vmlab.store.samples import HostReaders, samples
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.source import THE_HOST
from vmlab.telemetry.speed_trace import period_to_watch
from vmlab.tui.feed.past import figures, intent_of, past_times, planned_axes
from vmlab.tui.state.history import KEPT, TICKS
from vmlab.tui.state.hosts_of_run import HOST_EVENTS

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

    names: tuple[str, ...]
    events: tuple[Event, ...]
    figures: Mapping[str, Sequence[Sample]]
    anew: bool = False


@dataclass(eq=False)
class RunArrived(Message, bubble=False):
    """New events and samples of the run, in order; `urgent` where there is more than progress."""

    events: tuple[Event, ...]
    samples: tuple[Sample, ...]
    urgent: bool = True


@dataclass(eq=False)
class PastFound(Message, bubble=False):
    """How long workloads took in earlier runs of the same experiment."""

    past: PastTimes


@dataclass(eq=False)
class RunLost(Message, bubble=False):
    """The run is over; `reason` is given where it has no last event."""

    run: str
    reason: str = ""


_FOLLOW_SECONDS = 0.5
_LOOK_SECONDS = 1.5


class LiveFeed:
    """Follows the newest run that lives, or the one that `follow` names, until it ends; then looks for the next."""

    def __init__(self, post: PostMessage) -> None:
        self._post = post
        self._stop = threading.Event()
        self._wanted: Path | None = None
        self._host = ""
        self._thread = threading.Thread(target=self._work, name="live-feed", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End; returns when the thread has closed what it read."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2)

    def follow(self, folder: Path) -> None:
        """Follow the run in `folder` from now on."""
        self._wanted = folder

    def choose(self, host: str) -> None:
        """Of a fleet follow this host from now on."""
        self._host = host

    def _work(self) -> None:
        problem = others = ""
        while not self._stop.is_set():
            try:
                folder = self._wanted or _newest_alive()
                self._wanted = None
                if folder is None and (found := _others()) != others:
                    others = found
                    self._post(OthersFound(others))
                if folder is not None:
                    self._host = ""
                    _Following(folder, self._post, lambda: self._host).until(self._over)
                problem = ""
            except (VmlabError, OSError) as error:
                if str(error) != problem:
                    problem = str(error)
                    self._post(Remarked("warning", f"{problem}; trying again"))
            self._stop.wait(_LOOK_SECONDS if self._wanted is None else 0)

    def _over(self) -> bool:
        """Whether the run that is followed is to be left; waits for the next look otherwise."""
        return self._stop.wait(_FOLLOW_SECONDS) or self._wanted is not None


def _others() -> str:
    """The runs that measure on this host, as far as this user may know; asked where none is followed."""
    found = host_queue().measuring
    return f"{', '.join(map(str, found))} {'measures' if len(found) == 1 else 'measure'}" if found else ""


class _Following:
    """One run, from its first event to its last."""

    def __init__(self, folder: Path, post: PostMessage, chosen: Callable[[], str] = str) -> None:
        """`chosen` tells which host of a fleet is followed; the first that joined where it is empty."""
        self._folder = folder
        self._post = post
        self._chosen = chosen
        self._host: str | None = None
        self._event_row = 0
        self._sample_row = 0
        self._host_row = 0
        self._taken: dict[str, float] = {}
        """The moment of the newest figures that were read of each host of a fleet."""
        self._since = time.monotonic() - KEPT
        self._ended = False
        self._layouts: dict[int, SampleNames] = {}
        """One layout object for all samples of one form: viewers look values up once for each."""

    def until(self, over: Callable[[], bool]) -> None:
        """Follow until the run is over or `over` says so, which waits between two looks."""
        reader = self._opened(over)
        if reader is None:
            return
        with HostReaders(reader) as readers, reader:
            while not self._look(self._of_host(reader, readers), reader, readers):
                if over():
                    return

    def _of_host(self, whole: RunReader, readers: HostReaders) -> RunReader:
        """The reader of what is followed: of a fleet one host, which is read from its beginning when it is chosen."""
        names = whole.hosts()
        host = self._chosen() if self._chosen() in names else names[0] if names else ""
        found = readers.of(host)
        if host != self._host:
            self._host = host
            self._event_row = self._sample_row = 0
            # Hosts take cells in turn, so the next number is not the next cell of one.
            planned = () if host else planned_axes(self._folder)
            self._post(RunFound(self._folder.name, intent_of(whole), planned, host))
        return found

    def _opened(self, over: Callable[[], bool]) -> RunReader | None:
        """The run's store, as soon as there is something in it; None where that is not waited for any longer."""
        while True:
            alive = is_alive(self._folder)
            try:
                return RunReader(self._folder / STORE)
            except NotBegunError:
                if not alive:
                    self._post(RunLost(self._folder.name, "it ended before it began to record"))
                    return None
            if over():
                return None

    def _look(self, reader: RunReader, whole: RunReader, readers: HostReaders) -> bool:
        """Read what is new; whether the run is over."""
        # Checked before the store is read, so that a last event written in between is still found.
        alive = is_alive(self._folder)
        events = tuple(self._events(reader))
        taken = tuple(self._samples(reader))
        self._look_at_hosts(whole, readers)
        if events or taken:
            urgent = bool(taken) or any(not isinstance(event, WorkloadProgressed) for event in events)
            self._post(RunArrived(events, taken, urgent=urgent))
        for event in events:
            if isinstance(event, RunStarted):
                self._post(PastFound(past_times(self._folder.name, event.scenario, event.size)))
        if self._ended or not alive:
            self._post(RunLost(self._folder.name, "" if self._ended else "its processes are gone"))
            return True
        return False

    def _events(self, reader: RunReader) -> Iterator[Event]:
        for row, event in reader.events(self._event_row):
            self._event_row = row
            self._ended = self._ended or isinstance(event, RunEnded)
            yield event

    def _samples(self, reader: RunReader) -> Iterator[Sample]:
        for row, sample in samples(reader, since=self._since, after=self._sample_row, layouts=self._layouts):
            self._sample_row = row
            yield sample

    def _look_at_hosts(self, whole: RunReader, readers: HostReaders) -> None:
        """Read what is new of all hosts of a fleet; nothing is read of any other run."""
        names = whole.hosts()
        if not names:
            return
        anew = self._host_row == 0
        events: list[Event] = []
        for row, event in whole.events(self._host_row, HOST_EVENTS):
            self._host_row = row
            events.append(event)
        found: dict[str, list[Sample]] = {}
        oldest = time.monotonic() - TICKS - 1
        for name in names:
            # The bounds of a span are part of it.
            since = math.nextafter(self._taken.get(name, oldest), math.inf)
            if new := figures(readers.of(name), since):
                found[name] = new
                self._taken[name] = new[-1].mono
        if events or found or anew:
            self._post(HostsArrived(names, tuple(events), found, anew=anew))


def _newest_alive() -> Path | None:
    # A recording is watched where it is opened, as Live reads the host itself.
    return next((folder for folder in run_folders()[:20] if is_alive(folder) and not is_recording(folder)), None)


INTERVAL = 1.0


def host_recorder(post: PostMessage) -> Recorder:
    """What reads the host while no run does, by the recorder that runs use; the first figures come after a second."""

    def remarked(text: str) -> None:
        post(Remarked("info", text))

    def sampled(sample: Sample) -> None:
        post(HostSampled(sample, domains.domains))

    domains = Domains(THE_HOST, notify=remarked)
    watched = Watched(lab_folders=[runs_folder()], scope="process", notify=remarked)
    return Recorder(INTERVAL, sampled, watched, speed=period_to_watch(INTERVAL), domains=domains)
