"""The controller's part of the link between two hosts, over ends in memory."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest

from tests.waiting import until
from vmlab.fleet import frame_relay
from vmlab.fleet.frame_relay import FrameRelay
from vmlab.hypervisor.frame_link.frames import HEARTBEAT, MOST, Frames, packed
from vmlab.model.errors import CommandFailed

FRAMES = [bytes([number]) * size for number, size in enumerate((14, 60, MOST), start=1)]


class _Input:
    def __init__(self) -> None:
        self.written = b""
        self.taking = asyncio.Event()
        self.taking.set()
        self.ended = False

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.written += data

    async def drain(self) -> None:
        """Wait while nothing is taken."""
        await self.taking.wait()

    @property
    def frames(self) -> list[bytes]:
        """What was written, without heartbeats."""
        return Frames().take(self.written)

    def write_eof(self) -> None:
        """Note it."""
        self.ended = True


class _End:
    """An end, as a process of asyncssh; `says` is what it sends."""

    def __init__(self) -> None:
        self.stdin, self.stdout, self.stderr = _Input(), asyncio.StreamReader(), asyncio.StreamReader()

    def says(self, data: bytes) -> None:
        self.stdout.feed_data(data)

    def dies(self, words: str = "") -> None:
        self.stderr.feed_data(words.encode())
        self.stderr.feed_eof()
        self.stdout.feed_eof()

    async def wait(self) -> None:
        """It has ended."""


async def _joined() -> tuple[FrameRelay, _End, _End]:
    one, other = _End(), _End()
    relay = FrameRelay({"hv1": one, "hv2": other})
    one.says(HEARTBEAT)
    other.says(HEARTBEAT)
    await relay.begin()
    return relay, one, other


async def _cut(relay: FrameRelay) -> str:
    return await asyncio.wait_for(asyncio.shield(relay.cut), 30)


async def test_frames_go_both_ways_and_heartbeats_stay() -> None:
    """Each end gets what the other one sent, whole."""
    relay, one, other = await _joined()
    stream = packed(FRAMES)
    one.says(stream[:20])
    other.says(HEARTBEAT + stream)
    one.says(stream[20:] + HEARTBEAT)
    await until(lambda: one.stdin.frames == other.stdin.frames == FRAMES, "all frames on both sides")
    await relay.close()
    assert one.stdin.ended and other.stdin.ended


async def test_an_end_that_takes_nothing_stops_the_reading_of_the_other_one() -> None:
    """What is in flight stays bounded, as nothing more is read."""
    relay, one, other = await _joined()
    other.stdin.taking.clear()
    one.says(packed(FRAMES))
    await until(lambda: other.stdin.frames, "the first frames")
    one.says(packed(FRAMES))
    await asyncio.sleep(0.1)
    assert other.stdin.frames == FRAMES
    other.stdin.taking.set()
    await until(lambda: other.stdin.frames == FRAMES * 2, "the frames that had to wait")
    await relay.close()


async def test_a_connection_that_is_reset_cuts_both_ends() -> None:
    """In words, and neither end stays."""
    relay, one, other = await _joined()
    one.stdout.set_exception(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
    why = await _cut(relay)
    assert why.startswith("the link was cut: ")
    assert why.endswith("Connection reset by peer")
    assert other.stdin.ended
    await relay.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "the link was cut: host hv2: its end has gone"),
        ("vmlab: the lab's runner has ended\n", "the link was cut: host hv2: vmlab: the lab's runner has ended"),
    ],
)
async def test_the_last_words_of_an_end_are_the_reason(words: str, why: str) -> None:
    """Where it had none, that it has gone."""
    relay, one, other = await _joined()
    other.dies(words)
    assert await _cut(relay) == why
    assert one.stdin.ended
    await relay.close()


async def test_what_is_no_frame_cuts_the_link() -> None:
    """A host that sends anything else is not passed on."""
    relay, one, other = await _joined()
    one.says((MOST + 1).to_bytes(2) + b"x")
    assert await _cut(relay) == f"the link was cut: a frame of {MOST + 1} bytes"
    assert not other.stdin.frames
    await relay.close()


async def test_an_end_that_is_silent_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cable that was pulled says nothing."""
    monkeypatch.setattr(frame_relay, "SILENT_SECONDS", 0.2)
    relay, _, _ = await _joined()
    assert (await _cut(relay)).startswith("the link was cut: nothing was heard of host hv")
    await relay.close()


async def test_an_end_that_does_not_come_up_says_why() -> None:
    """Then there is no link."""
    one, other = _End(), _End()
    one.says(HEARTBEAT)
    other.dies("vmlab: the lab's link has its end here already\n")
    relay = FrameRelay({"hv1": one, "hv2": other})
    with pytest.raises(CommandFailed, match="no link to host hv2: vmlab: the lab's link has its end here already"):
        await relay.begin()
    await relay.close()
