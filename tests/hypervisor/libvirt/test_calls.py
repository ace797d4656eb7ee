"""Calls have a deadline, and a stuck one costs nothing but itself."""

import asyncio
import threading

import libvirt
import pytest

from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.libvirt.domain_watch import start_event_loop
from vmlab.model.errors import DeadlineExceeded, HypervisorError


async def test_a_stuck_call_is_named_and_others_go_on() -> None:
    stuck = threading.Event()
    waiting = [asyncio.create_task(call("asking a stuck guest", 3600, stuck.wait)) for _ in range(40)]
    await asyncio.sleep(0.05)
    assert await call("adding", 120, lambda left, right: left + right, 2, right=3) == 5
    assert not any(task.done() for task in waiting)
    late = [asyncio.create_task(call("asking a stuck guest", 1, stuck.wait)) for _ in range(40)]
    for task in late:
        with pytest.raises(DeadlineExceeded, match=r"asking a stuck guest took longer than 1(\.0)? s"):
            await task
    assert not any(task.done() for task in waiting)
    stuck.set()
    assert all(await asyncio.gather(*waiting))


async def test_other_exceptions_pass_through() -> None:
    def broken() -> None:
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError, match="gone"):
        await call("reading", 120, broken)


async def test_libvirts_own_errors_become_ours(capfd: pytest.CaptureFixture[str]) -> None:
    start_event_loop()
    connection = libvirt.open("test:///default")
    try:
        with pytest.raises(HypervisorError, match="looking: Domain not found"):
            await call("looking", 120, connection.lookupByName, "no-such-guest")
    finally:
        connection.close()
    assert capfd.readouterr().err == ""


def test_the_event_loop_is_started_once() -> None:
    assert start_event_loop() is start_event_loop()
    assert start_event_loop().daemon
