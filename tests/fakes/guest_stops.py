"""The program in a guest that looks for processes that stand still, as the lab hears of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

Stopped = Sequence[tuple[str, str, float]]
"""Name, how and seconds of each that stood still."""


def is_watch(argv: Sequence[str]) -> bool:
    return argv[-1].endswith("guest_stops.py")


@dataclass
class WatchInside:
    """`guests.channel.Channel`: says what was seen in ten seconds, or `says` instead."""

    stopped: Stopped = ()
    says: str | None = None
    closed: bool = False
    sent: int = 0
    _lines: list[str] = field(default_factory=lambda: ['{"ready":true}'])

    async def send(self, line: str) -> None:
        self.sent += 1
        if self.sent == 1:
            return
        told = json.dumps({"stopped": list(self.stopped), "seconds": 10.0})
        self._lines.append(told if self.says is None else self.says)

    async def receive(self) -> str:
        return self._lines.pop(0) if self._lines else ""

    async def close(self) -> None:
        self.closed = True
