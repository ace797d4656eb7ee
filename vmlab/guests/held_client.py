"""A workload's client, held ready behind the start line, and the clock of the place where it waits."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from vmlab.guests.channel import GUEST_STOPS, PAGE_CACHE, START_LINE, Channel, Launching, payload_file
from vmlab.model.concurrency import within
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED, stored
from vmlab.workloads.shell import Shell
from vmlab.workloads.verification import UNREADABLE
from vmlab.workloads.workload_steps import Client, Finished

_LARGEST = 1e12
"""Of a clock, of seconds and of a status."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The place's wall clock less the host's monotonic one, in seconds, give or take `uncertainty` seconds.

    Nobody sets that one, as chronyd(8) may set the host's wall clock. Half the round trip bounds the error, as with
    NTP's single exchange (RFC 5905, section 8).
    """

    seconds: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class TrueStart:
    """When the client really started, by the host's monotonic clock, and how late that was, in seconds."""

    host_mono: float
    late: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class HostSpan:
    """Seconds of the host's clock from the client's true start to its end, give or take `uncertainty` seconds."""

    seconds: float
    uncertainty: float


def lab_programs() -> dict[str, bytes]:
    """The lab's own programs in every place where clients run, by their paths there."""
    return {path: payload_file(PurePosixPath(path).name) for path in (START_LINE, PAGE_CACHE, GUEST_STOPS)}


async def install_lab_programs(shell: Shell) -> None:
    """Put them into a guest. Raises GuestError and DeadlineExceeded."""
    for path, program in lab_programs().items():
        await shell.write(path, program)


class HeldClient:
    """One client: hold, measure the clock, start, follow, finish."""

    def __init__(self, place: str, client: Client, channel: Channel) -> None:
        self.place = place
        self.client = client
        self._channel = channel
        self._offset: ClockOffset | None = None
        self.started: TrueStart | None = None
        self._out: list[str] = []
        self._err: list[str] = []
        self._printed = 0

    @classmethod
    async def hold(cls, shell: Shell, launching: Launching, client: Client, deadline: float) -> HeldClient:
        """Fork the client in its place, up to the moment before its exec."""
        channel = await launching.launch(["python3", "-I", "-S", START_LINE])
        held = cls(shell.name, client, channel)
        order = {"argv": list(client.argv), "environment": client.environment, "stdin": client.stdin}
        try:
            async with held._within(deadline, "was not ready"):
                await channel.send(json.dumps(order))
                await held._expect("ready")
        except BaseException:
            # Close the channel here: this may be cancelled because another client failed, and no one else has the
            # channel.
            with contextlib.suppress(GuestError, DeadlineExceeded):
                await channel.close()
            raise
        return held

    def _within(self, deadline: float, what: str) -> AbstractAsyncContextManager[None]:
        return within(deadline, f"{self.place}: client {self.client.argv[0]} {what} within {deadline:.0f} s")

    async def _message(self) -> dict[str, Any]:
        line = await self._channel.receive()
        if not line:
            raise GuestError(f"{self.place}: lost the client {self.client.argv[0]}")
        try:
            message = json.loads(line)
            message = message if isinstance(message, dict) else {}
            _check(message)
        except UNREADABLE as error:
            raise GuestError(f"{self.place}: the start line said {line[:200]!r}") from error
        return message

    async def _expect(self, key: str) -> Any:
        message = await self._message()
        if key not in message:
            raise GuestError(f"{self.place}: the start line said {message} instead of {key}")
        return message[key] if key != "pong" else message

    async def measure_clock(self, tries: int = 9, deadline: float = 20.0) -> ClockOffset:
        """The best of several exchanges: the one with the shortest round trip."""
        best: ClockOffset | None = None
        async with self._within(deadline, "did not tell its clock"):
            for number in range(tries):
                sent = time.monotonic()
                await self._channel.send(json.dumps({"ping": number}))
                clock = (await self._expect("pong"))["clock"]
                received = time.monotonic()
                exchange = ClockOffset(clock - (sent + received) / 2, (received - sent) / 2)
                if best is None or exchange.uncertainty < best.uncertainty:
                    best = exchange
        assert best is not None
        self._offset = best
        return best

    async def start_at(self, host_mono: float) -> None:
        """Send the order to start at `host_mono`, converted to the clock of the place."""
        offset = self._offset or await self.measure_clock()
        self._ordered = host_mono
        await self._channel.send(json.dumps({"start": host_mono + offset.seconds}))

    async def follow(self, on_start: Callable[[TrueStart], None], deadline: float) -> AsyncIterator[str]:
        """Each line of the client's standard output, until its end; then `finished` is set.

        `deadline` is in seconds from now. Raises DeadlineExceeded; the client is killed then.
        """
        async with self._within(deadline, "did not end"):
            while True:
                message = await self._message()
                self._count(message)
                if "out" in message:
                    self._out.append(message["out"])
                    yield message["out"]
                elif "err" in message:
                    self._err.append(message["err"])
                elif "started" in message:
                    self.started = self._true_start(message["started"])
                    on_start(self.started)
                elif "ended" in message:
                    self._ended = message["ended"]
                    return

    def _count(self, message: dict[str, Any]) -> None:
        self._printed += sum(len(stored(message[stream])) for stream in ("out", "err") if stream in message)
        if self._printed > MOST_PRINTED:
            name = self.client.argv[0]
            raise GuestError(f"{self.place}: client {name} printed more than {format_bytes(MOST_PRINTED)}")

    def _true_start(self, clock: float) -> TrueStart:
        assert self._offset is not None
        host_mono = clock - self._offset.seconds
        return TrueStart(host_mono, host_mono - self._ordered, self._offset.uncertainty)

    async def host_span(self, deadline: float) -> HostSpan:
        """How long the client worked by the host's clock; only after `follow` is exhausted and the client started.

        The clock of the place is measured again for it, because the host hears of a client's end late while guests
        have all of its processors.
        """
        assert self.started is not None
        end = await self.measure_clock(5, deadline)
        seconds = self._ended["clock"] - end.seconds - self.started.host_mono
        return HostSpan(seconds, self.started.uncertainty + end.uncertainty)

    @property
    def finished(self) -> Finished:
        """How the client ended; only after `follow` is exhausted."""
        return Finished(
            status=self._ended["status"],
            seconds=self._ended["seconds"],
            stdout="\n".join(self._out) + "\n" if self._out else "",
            stderr="\n".join(self._err) + "\n" if self._err else "",
        )

    @property
    def stopped_seconds(self) -> float:
        """For how long the client was stopped in its place; only after `follow` is exhausted."""
        return float(self._ended.get("stopped", 0.0))

    async def close(self) -> None:
        """End the client if it still runs."""
        await self._channel.close()


def _check(message: dict[str, Any]) -> None:
    """Raise an error of `UNREADABLE` for a message whose fields are not what they should be: guests may be hostile."""
    ended = message.get("ended", {})
    numbers = [message[key] for key in ("started", "clock") if key in message]
    if "ended" in message:
        numbers += [ended["clock"], ended["seconds"], ended["status"], ended.get("stopped", 0.0)]
        if type(ended["status"]) is not int or ended["seconds"] < 0:
            raise ValueError("a client ends with a status, after some seconds")
    if not all(type(one) in (int, float) and abs(one) <= _LARGEST for one in numbers):
        raise ValueError("a number is none")
    if not all(isinstance(message[stream], str) for stream in ("out", "err") if stream in message):
        raise ValueError("output is text")
    if "pong" in message and "clock" not in message:
        raise ValueError("an answer without a clock")
