"""One end of the link: frames of the lab's TAP to standard output, and those of standard input to the TAP.

Started over SSH by the controller of a fleet. It listens on no port, and ends with its line, with the lab's runner, and
when nothing was heard of the controller for some seconds; the TAP goes with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
from collections.abc import Sequence

from vmlab.hypervisor.frame_link.frames import (
    HEARTBEAT,
    HEARTBEAT_SECONDS,
    MOST,
    SILENT_SECONDS,
    Border,
    Frames,
    address,
    packed,
)
from vmlab.hypervisor.frame_link.tap import enter_lab, open_tap
from vmlab.model.errors import HypervisorError, UsageError

_AT_ONCE = 64
"""Frames that are read before anything else is done."""
_IN_FLIGHT = 2**18
"""Bytes that wait for the controller; beyond that, frames wait in the TAP, which drops what comes too fast."""
_DROPPED = (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EIO)


class _Outgoing(asyncio.Protocol):
    """Standard output: tells when it takes no more."""

    def __init__(self, end: LinkEnd) -> None:
        self._end = end

    def pause_writing(self) -> None:
        self._end.listen(listen=False)

    def resume_writing(self) -> None:
        self._end.listen()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.end("the line was closed")


class LinkEnd:
    """Carries frames until `ended` has the reason why it carries no more."""

    def __init__(self, tap: int, border: Border) -> None:
        self._tap = tap
        self._border = border
        self._loop = asyncio.get_running_loop()
        self._out: asyncio.WriteTransport | None = None
        self.ended: asyncio.Future[str] = self._loop.create_future()

    def end(self, why: str) -> None:
        """Carry no more."""
        if not self.ended.done():
            self.ended.set_result(why)

    def listen(self, *, listen: bool = True) -> None:
        """Read from the TAP, or leave what comes there."""
        if listen and not self.ended.done():
            self._loop.add_reader(self._tap, self._read_tap)
        else:
            self._loop.remove_reader(self._tap)

    async def run(self, runner: int) -> str:
        """Until it ends; why. `runner` is a descriptor of the lab's runner (pidfd)."""
        reader = asyncio.StreamReader()
        await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        out, _ = await self._loop.connect_write_pipe(lambda: _Outgoing(self), sys.stdout)
        self._out = out
        out.set_write_buffer_limits(high=_IN_FLIGHT)
        self._loop.add_reader(runner, self.end, "the lab's runner has ended")
        out.write(HEARTBEAT)
        self.listen()
        tasks = [asyncio.create_task(self._incoming(reader)), asyncio.create_task(self._beat())]
        try:
            return await self.ended
        finally:
            self.listen(listen=False)
            self._loop.remove_reader(runner)
            for task in tasks:
                task.cancel()
            out.abort()

    def _read_tap(self) -> None:
        frames = []
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                if self._border.leaves(frame := os.read(self._tap, MOST + 1)):
                    frames.append(frame)
        if frames and self._out is not None:
            self._out.write(packed(frames))

    async def _incoming(self, reader: asyncio.StreamReader) -> None:
        frames = Frames()
        try:
            while True:
                async with asyncio.timeout(SILENT_SECONDS):
                    piece = await reader.read(2**16)
                if not piece:
                    break
                for frame in frames.take(piece):
                    if self._border.enters(frame):
                        self._put(frame)
            self.end("the line was closed")
        except TimeoutError:
            self.end(f"nothing was heard of the controller for {SILENT_SECONDS:.0f} s")
        except (OSError, ValueError) as error:
            self.end(f"the line broke off: {error}")

    def _put(self, frame: bytes) -> None:
        try:
            os.write(self._tap, frame)
        except OSError as error:
            if error.errno not in _DROPPED:
                raise

    async def _beat(self) -> None:
        while self._out is not None:
            self._out.write(HEARTBEAT)
            await asyncio.sleep(HEARTBEAT_SECONDS)


def serve_link(runner: int, own: Sequence[str], far: Sequence[str]) -> str:
    """Join the lab of the process `runner` to the other one, until the line ends; why it ended.

    `own` and `far` are the MAC addresses of the cards of both. Raises UsageError, HypervisorError and RefusedError.
    """
    try:
        border = Border([address(one) for one in own], [address(one) for one in far])
        held = os.pidfd_open(runner)
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise HypervisorError(f"the run's runner has gone: {error.strerror}") from error
    try:
        enter_lab(runner)
        tap = open_tap()
        try:
            return asyncio.run(_served(tap, border, held))
        finally:
            os.close(tap)
    finally:
        os.close(held)


async def _served(tap: int, border: Border, runner: int) -> str:
    return await LinkEnd(tap, border).run(runner)
