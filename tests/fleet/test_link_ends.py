"""The link's real ends at the bridges of two network namespaces, with the controller's part between them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.lab.faked import ROOT
from tests.waiting import until
from vmlab.fleet.frame_relay import FrameRelay
from vmlab.hypervisor.frame_link.frames import SILENT_SECONDS
from vmlab.model.names import (
    BRIDGE,
    BRIDGE_MAC,
    HOST_ADDRESS,
    LINK_TAP,
    OTHER_BRIDGE_MAC,
    OTHER_HOST_ADDRESS,
    PREFIX,
    guest_mac,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")
END = "import sys; from vmlab.hypervisor.frame_link.link_end import serve_link; sys.exit(serve_link({}, {!r}, {!r}))"
STRANGER = guest_mac(9, 9)
_PIPE = asyncio.subprocess.PIPE


class Lab:
    """A bridge in a network namespace of its own, which a sleeping process holds as a runner does."""

    def __init__(self, address: str, mac: str) -> None:
        self.address = address
        self.mac = mac
        self.keeper = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        end, own = time.monotonic() + 30, Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{self.keeper.pid}/ns/net").readlink() == own:
            assert time.monotonic() < end
            time.sleep(0.01)
        self.ip("link", "add", BRIDGE, "type", "bridge")
        self.ip("link", "set", BRIDGE, "address", mac, "up")
        self.ip("addr", "add", f"{address}/{PREFIX}", "dev", BRIDGE)

    def within(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it."""
        return subprocess.run(
            ["nsenter", f"--target={self.keeper.pid}", "--net", *words], check=False, capture_output=True, text=True
        )

    def ip(self, *words: str) -> str:
        """Run ip there."""
        done = self.within("ip", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def reaches(self, address: str) -> bool:
        """Whether a closed port of an address refuses a connection, which takes frames both ways."""
        ask = f"import socket; socket.create_connection(({address!r}, 9), 3)"
        done = await asyncio.to_thread(self.within, sys.executable, "-c", ask)
        return "ConnectionRefusedError" in done.stderr

    async def end(self, far: str, own: str = "") -> Process:
        """An end of the link here."""
        program = END.format(self.keeper.pid, [own or self.mac], [far])
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, cwd=ROOT, stdin=_PIPE, stdout=_PIPE, stderr=_PIPE
        )

    def has_tap(self) -> bool:
        """Whether the link has its end here."""
        return LINK_TAP in self.ip("-o", "link")


@pytest.fixture
def labs() -> Iterator[tuple[Lab, Lab]]:
    """Two, with the addresses that both halves of a cell have."""
    made = [Lab(HOST_ADDRESS, BRIDGE_MAC), Lab(OTHER_HOST_ADDRESS, OTHER_BRIDGE_MAC)]
    yield made[0], made[1]
    for lab in made:
        lab.keeper.kill()
        lab.keeper.wait()


@asynccontextmanager
async def _joined(
    near: Lab, far: Lab, **own: str
) -> AsyncIterator[tuple[FrameRelay, list[asyncio.subprocess.Process]]]:
    ends = [await near.end(far.mac, **own), await far.end(near.mac)]
    relay = FrameRelay({"hv1": ends[0], "hv2": ends[1]})
    try:
        await relay.begin()
        yield relay, ends
    finally:
        await relay.close()
        for end in ends:
            await end.communicate()


async def test_two_labs_are_one_network_while_the_link_is_there(labs: tuple[Lab, Lab]) -> None:
    """Each reaches the other one, a second end is refused, and with the link the ports of both bridges go."""
    near, far = labs
    assert not await near.reaches(far.address)
    async with _joined(near, far):
        assert await near.reaches(far.address)
        assert await far.reaches(near.address)
        assert far.has_tap()
    assert not await near.reaches(far.address)
    assert not near.has_tap()
    assert not far.has_tap()


async def test_a_card_that_is_not_of_the_labs_is_not_heard(labs: tuple[Lab, Lab]) -> None:
    """Frames from another address than those that are named do not leave."""
    near, far = labs
    async with _joined(near, far, own=STRANGER):
        assert not await near.reaches(far.address)


async def test_an_end_that_is_killed_takes_the_other_one_along(labs: tuple[Lab, Lab]) -> None:
    """The reason names its host."""
    near, far = labs
    async with _joined(near, far) as (relay, ends):
        ends[1].kill()
        assert (await asyncio.wait_for(asyncio.shield(relay.cut), 30)).startswith("the link was cut: ")
        await until(lambda: not near.has_tap() and not far.has_tap(), "both ends are gone")


async def test_an_end_goes_with_its_labs_runner(labs: tuple[Lab, Lab]) -> None:
    """Else its TAP would keep the lab's network."""
    near, far = labs
    async with _joined(near, far) as (relay, _):
        far.keeper.kill()
        assert await asyncio.wait_for(asyncio.shield(relay.cut), 30) == (
            "the link was cut: host hv2: the lab's runner has ended"
        )


async def test_an_end_that_nobody_speaks_to_goes(labs: tuple[Lab, Lab]) -> None:
    """A controller whose cable was pulled says nothing, and its line stays open."""
    near, far = labs
    end = await near.end(far.mac)
    assert end.stderr is not None
    said = (await asyncio.wait_for(end.stderr.read(), 60)).decode().strip()
    assert said == f"nothing was heard of the controller for {SILENT_SECONDS:.0f} s"
    await end.communicate()
    assert not near.has_tap()


async def test_the_host_of_no_lab_is_not_entered(labs: tuple[Lab, Lab]) -> None:
    """A runner in the network of the host itself is none."""
    ask = END.format(os.getpid(), [BRIDGE_MAC], [OTHER_BRIDGE_MAC])
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", ask], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert "the run's runner is in the host's own network" in done.stderr
