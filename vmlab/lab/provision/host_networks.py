"""What the kernel of this host lacks for guests' networks: tried out when a plan asks for the first time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

_PROBE = ("-m", "vmlab.hypervisor.overlay_network.network_probe")
_ENOUGH = 60.0


class Lacking(Mapping[str, str]):
    """The reasons, by ``vxlan``, ``nat``, ``bandwidth``; empty until somebody asks, and for users who may not try."""

    def __init__(self) -> None:
        self._found: dict[str, str] | None = None

    @property
    def found(self) -> dict[str, str]:
        """What is known already; nothing is tried for it."""
        return dict(self._found or {})

    def _tried(self) -> dict[str, str]:
        if self._found is None:
            self._found = _probed() if os.geteuid() == 0 else {}
        return self._found

    def __getitem__(self, name: str) -> str:
        """The reason why there is no such thing here. Raises KeyError where there is."""
        return self._tried()[name]

    def __iter__(self) -> Iterator[str]:
        """All that is lacking."""
        return iter(self._tried())

    def __len__(self) -> int:
        """How much is lacking."""
        return len(self._tried())

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether it is the same object: a comparison of two hosts must try nothing."""
        return self is other


def _probed() -> dict[str, str]:
    """What the probe says; nothing where it says nothing, so that a run finds out itself."""
    argv = [sys.executable, *_PROBE]
    try:
        probe = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ENOUGH, check=True)
        said: dict[str, str] = json.loads(probe.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return said


LACKING = Lacking()
"""Of this host; a process tries once."""
