"""The host's own figures while no run records them: the same recorder that runs use, in the console's process."""

from __future__ import annotations

from vmlab.model.places import runs_folder
from vmlab.model.sample import Sample
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.source import THE_HOST
from vmlab.tui.feed.messages import HostProblem, HostSampled, PostMessage

INTERVAL = 1.0


class HostFeed:
    """Reads the host once a second between `start` and `stop`."""

    def __init__(self, post: PostMessage) -> None:
        self._post = post
        self._domains = Domains(THE_HOST, notify=self._host_problem_found)
        watched = Watched(lab_folders=[runs_folder()], scope="process", notify=self._host_problem_found)
        self._recorder = Recorder(INTERVAL, self._sampled, watched, speed=True, domains=self._domains)

    def start(self) -> None:
        """Begin; the first figures come after a second."""
        self._recorder.start()

    def stop(self) -> None:
        """End; waits for the reading under way."""
        self._recorder.stop()

    def _sampled(self, sample: Sample) -> None:
        self._post(HostSampled(sample, self._domains.domains))

    def _host_problem_found(self, text: str) -> None:
        self._post(HostProblem(text))
