"""What stood still inside a cell's guests while workloads ran: servers, whatever else works there, network links.

The host sees a guest's virtual CPUs, and the start line its client. What a client works against, such as a database,
only its own guest shows: a program there looks once a second (``payload/guest_stops.py``).
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from vmlab.guests.channel import GUEST_STOPS, Channel
from vmlab.lab.cell.disturbance import Finding
from vmlab.lab.cell.undisturbed import Stood
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.timing import Timing
from vmlab.model.concurrency import within
from vmlab.model.errors import GuestError, VmlabError, in_one_line
from vmlab.model.visible import visible_line
from vmlab.workloads.verification import UNREADABLE

_NO_CARRIER = "without a carrier"
_THROTTLED = "throttled"
_HOW = ("stopped", "frozen", _THROTTLED, "offline", _NO_CARRIER)
_MOST = 100
_QUOTAS, _OF_QUOTA = "/sys/fs/cgroup/", "/cpu.max"
_LIST_QUOTAS = ("grep", "-rs", "", f"--include={_OF_QUOTA[1:]}", _QUOTAS)


class StopsInside:
    """Watches the guests with Linux that are virtual machines, from `start` until `end`, or until their tile leaves."""

    def __init__(self, guests: GuestSet, timing: Timing) -> None:
        self._guests = guests
        self._timing = timing
        self._channels: dict[str, Channel] = {}
        self._unwatched: dict[str, str] = {}
        self._quotas: dict[str, dict[str, str]] = {}
        self._stood: list[Stood] = []
        self._limited: list[Stood] = []
        self._seconds = 0.0

    def _keys(self, tile: int | None) -> list[str]:
        every = (one for one in self._guests.guests if tile in (None, one.tile))
        return [one.key for one in every if not self._guests.has_windows(one)]

    async def begin(self, tile: int | None = None) -> None:
        """Get ready in the guests of one tile, or of all."""
        await asyncio.gather(*map(self._begun, self._keys(tile)))

    async def _begun(self, guest: str) -> None:
        channel: Channel | None = None
        try:
            async with _within(self._timing.hold):
                channel = await self._guests.shells[guest].launch(["python3", "-I", "-S", GUEST_STOPS])
                await _answer(channel, "ready")
            self._quotas[guest] = await self._quotas_in(guest)
            self._channels[guest] = channel
        except (VmlabError, OSError) as error:
            self._unwatched[guest] = in_one_line(error)
            if channel is not None:
                await _closed(channel)

    async def start(self, tile: int | None = None) -> None:
        """Count from now on."""
        await asyncio.gather(*(self._sent(key) for key in self._keys(tile) if key in self._channels))

    async def _sent(self, guest: str) -> None:
        try:
            async with _within(self._timing.clock):
                await self._channels[guest].send("{}")
        except (VmlabError, OSError) as error:
            self._unwatched[guest] = in_one_line(error)

    async def end(self) -> None:
        """Take what was seen."""
        await asyncio.gather(*map(self._told, self._channels))

    async def leave(self, tile: int) -> None:
        """Take what was seen in the guests of a tile that are about to end."""
        keys = [key for key in self._keys(tile) if key in self._channels]
        await asyncio.gather(*map(self._told, keys))
        await asyncio.gather(*(_closed(self._channels.pop(key)) for key in keys))

    async def _told(self, guest: str) -> None:
        if guest in self._unwatched:
            return
        channel = self._channels[guest]
        try:
            async with _within(self._timing.clock):
                await channel.send("{}")
                body = await _answer(channel, "stopped")
            told, before = body["stopped"], self._quotas[guest]
            # Asked again only where one of those that were there before has held something back.
            own = any(one[1] == _THROTTLED and one[0] in before for one in told)
            now = await self._quotas_in(guest) if own else {}
            self._seconds = max(self._seconds, body["seconds"])
            kept = {group for group, quota in before.items() if now.get(group) == quota}
            limited = [one for one in told if one[1] == _THROTTLED and one[0] in kept]
            self._limited += _stood(guest, limited)
            self._stood += _stood(guest, [one for one in told if one not in limited])
        except (VmlabError, OSError) as error:
            self._unwatched[guest] = in_one_line(error)

    async def _quotas_in(self, guest: str) -> dict[str, str]:
        """The CPU quotas in a guest of a user's image, by cgroup; vmlab's own image has none. None where it is not
        told: then nothing is excused.
        """
        if any(one.key == guest and one.resources.is_labs for one in self._guests.guests):
            return {}
        try:
            async with _within(self._timing.clock):
                listed = (await self._guests.shells[guest].run(_LIST_QUOTAS, check=False)).stdout
        except (VmlabError, OSError):
            return {}
        files = (line.rpartition(":") for line in listed.splitlines())
        return {
            file.removeprefix(_QUOTAS).removesuffix(_OF_QUOTA): quota
            for file, _, quota in files
            if not quota.startswith("max ")
        }

    async def stop(self) -> None:
        """End the programs, whatever has failed."""
        channels, self._channels = self._channels, {}
        await asyncio.gather(*map(_closed, channels.values()))

    def findings(self) -> Iterator[Finding]:
        """One for each process that stood still, each link that was lost, and each guest that was not watched."""
        for one in self._stood:
            if one.how.startswith(_NO_CARRIER):
                # Nobody knows for how long, nor how long what was lost took to be sent again.
                yield Finding(f"{one.who} was {one.how} while the workloads ran", breaks=True)
            else:
                yield one.finding(self._seconds)
        for one in self._limited:
            # What its user gives a service of their own image is part of what is measured.
            text = f"{one.who} was {one.how} for {one.seconds:.3g} s while the workloads ran, by a quota of its image"
            yield Finding(text, breaks=False)
        for guest, why in self._unwatched.items():
            yield Finding(f"{guest}: its processes were not watched: {why}", breaks=False)


def _within(seconds: float) -> AbstractAsyncContextManager[None]:
    return within(seconds, f"no answer within {seconds:g} s")


async def _closed(channel: Channel) -> None:
    with suppress(VmlabError, OSError):
        await channel.close()


async def _answer(channel: Channel, key: str) -> dict[str, Any]:
    """A line that has this key. A guest may be hostile: what is no such line is a GuestError."""
    line = await channel.receive()
    try:
        body = json.loads(line)
        if not isinstance(body, dict) or key not in body or not _is_told(body):
            raise ValueError("it lacks what it should have")
        return body
    except UNREADABLE as error:
        raise GuestError(f"the watch inside said {visible_line(line[:100])!r}") from error


def _is_told(body: dict[str, Any]) -> bool:
    if "stopped" not in body:
        return True
    told = body["stopped"]
    if not isinstance(told, list) or len(told) > _MOST or not all(len(one) == 3 for one in told):
        return False
    numbers = (body["seconds"], *(one[2] for one in told))
    sound = all(type(one) in (int, float) and math.isfinite(one) and one >= 0 for one in numbers)
    return sound and all(type(one[0]) is str and one[1] in _HOW for one in told)


def _stood(guest: str, told: Sequence[Sequence[Any]]) -> Iterator[Stood]:
    """Of several processes with one name, as the servers of one service are, the longest."""
    most: dict[tuple[str, str], float] = {}
    for name, how, seconds in told:
        key = (visible_line(name[:64]), how)
        most[key] = max(seconds, most.get(key, 0.0))
    return (Stood(f"{guest}: {name}", f"{how} inside its guest", seconds) for (name, how), seconds in most.items())
