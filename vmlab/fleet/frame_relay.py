"""The link between the labs of two hosts, as the controller carries it: from one SSH line to the other one.

Hosts need not reach each other, and nothing listens on a port. What an end sends is checked, and passed on as frames.
Each direction holds what the lines' windows hold, and no more: who reads too slowly stops the other end's reading.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import asyncssh

from vmlab.hypervisor.frame_link.frames import HEARTBEAT, HEARTBEAT_SECONDS, SILENT_SECONDS, Frames, packed
from vmlab.model.errors import CommandFailed
from vmlab.model.visible import visible_line

WAY = "ssh"
"""What carries the link, as records have it."""
_BEGIN_SECONDS = 60.0
"""Until an end has its TAP: vmlab is started there for it."""
_CUT = "the link was cut"


class FrameRelay:
    """Two ends of a link, by their hosts' names, and the frames between them. `cut` has the reason once it is cut."""

    def __init__(self, ends: Mapping[str, Any]) -> None:
        """`ends` are processes as those of asyncssh, with bytes."""
        self._ends = dict(ends)
        self._tasks: list[asyncio.Task[None]] = []
        self.cut: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def begin(self) -> None:
        """Carry frames as soon as both ends are up. Raises CommandFailed where one of them does not come up."""
        first = await asyncio.gather(*(self._begun(name, end) for name, end in self._ends.items()))
        (one, near), (other, far) = self._ends.items()
        self._tasks = [
            asyncio.create_task(self._carried(one, near, far, first[0])),
            asyncio.create_task(self._carried(other, far, near, first[1])),
            asyncio.create_task(self._beat()),
        ]

    async def _begun(self, name: str, end: Any) -> bytes:
        """What an end says first, which is a heartbeat once it has its TAP."""
        try:
            async with asyncio.timeout(_BEGIN_SECONDS):
                if first := await end.stdout.read(2**16):
                    return bytes(first)
                said = (await end.stderr.read(4096)).decode("utf-8", "replace").strip()
        except (OSError, asyncssh.Error, TimeoutError) as error:
            raise CommandFailed(f"no link to host {name}: {error or 'it was not up in time'}") from error
        raise CommandFailed(
            f"no link to host {name}: {visible_line(said.splitlines()[-1][:300]) if said else 'it ended'}"
        )

    async def _carried(self, name: str, source: Any, target: Any, piece: bytes) -> None:
        frames, why = Frames(), ""
        try:
            while piece:
                if found := frames.take(piece):
                    target.stdin.write(packed(found))
                    await target.stdin.drain()
                async with asyncio.timeout(SILENT_SECONDS):
                    piece = await source.stdout.read(2**16)
        except TimeoutError:
            why = f"nothing was heard of host {name} for {SILENT_SECONDS:.0f} s"
        except (OSError, asyncssh.Error, ValueError) as error:
            why = str(error)
        self._end(why or await self._last_words(name, source))

    async def _last_words(self, name: str, end: Any) -> str:
        said = ""
        with contextlib.suppress(OSError, asyncssh.Error, TimeoutError):
            async with asyncio.timeout(1.0):
                said = (await end.stderr.read(4096)).decode("utf-8", "replace").strip()
        return f"host {name}: " + (visible_line(said.splitlines()[-1][:300]) if said else "its end has gone")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            for end in self._ends.values():
                with contextlib.suppress(OSError, asyncssh.Error):
                    end.stdin.write(HEARTBEAT)

    def _end(self, why: str) -> None:
        if not self.cut.done():
            self.cut.set_result(f"{_CUT}: {why}")
        # Both TAPs go: half a link would hold up a cell that cannot pass any more.
        self._hang_up()

    def _hang_up(self) -> None:
        for end in self._ends.values():
            with contextlib.suppress(OSError, asyncssh.Error):
                end.stdin.write_eof()

    async def close(self) -> None:
        """Take the link away, and wait for a moment until its ends have gone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._hang_up()
        for end in self._ends.values():
            with contextlib.suppress(OSError, asyncssh.Error, TimeoutError):
                async with asyncio.timeout(2.0):
                    await end.wait()
        if not self.cut.done():
            self.cut.cancel()
