"""Steps side by side: results in order, one failure as itself, nothing left running."""

import asyncio
from typing import NoReturn

import pytest

from vmlab.model.concurrency import run_all, run_with_alarm, shielded
from vmlab.model.errors import GuestError, WorkloadError


async def says(word: str, seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return word


async def fails(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    raise GuestError("it went wrong")


class ClearsUp:
    """Waits for ever; when it is cancelled it needs a moment to clear up."""

    def __init__(self) -> None:
        self.cleared = 0

    async def clear_up(self) -> None:
        await asyncio.sleep(0.02)
        self.cleared += 1

    async def wait(self) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            self.cleared += 1
        return ""


async def test_results_come_in_the_order_of_the_steps() -> None:
    assert await run_all([says("slow", 0.02), says("quick")]) == ["slow", "quick"]
    assert await run_all([]) == []


async def test_a_failure_is_raised_as_itself_when_the_others_have_cleared_up() -> None:
    neighbour = ClearsUp()
    with pytest.raises(GuestError, match="it went wrong"):
        await run_all([neighbour.wait(), fails()])
    assert neighbour.cleared == 1


async def test_what_failed_because_of_a_failure_does_not_hide_it() -> None:
    async def loses_its_connection() -> str:
        try:
            return await says("never", 60)
        except asyncio.CancelledError:
            raise OSError("connection lost") from None

    with pytest.raises(GuestError, match="it went wrong"):
        await run_all([loses_its_connection(), fails(0.01)])


async def test_failures_on_two_floors_do_not_tear_a_step_out_of_its_clearing_up() -> None:
    below = [ClearsUp(), ClearsUp()]
    floors = [run_all([one.wait(), fails(after)]) for one, after in zip(below, (0.0, 0.01), strict=True)]
    with pytest.raises(GuestError):
        await run_all(floors)
    assert [one.cleared for one in below] == [1, 1]


async def test_a_cancellation_from_outside_is_not_hidden_by_what_it_made_fail() -> None:
    async def fails_when_cancelled() -> str:
        try:
            return await says("never", 60)
        except asyncio.CancelledError:
            raise GuestError("the connection was lost") from None

    task = asyncio.ensure_future(run_all([fails_when_cancelled()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def rings(seconds: float) -> NoReturn:
    await asyncio.sleep(seconds)
    raise GuestError("it died")


class Alarm(ClearsUp):
    """Never rings; counts that it was called off."""

    async def watch(self) -> NoReturn:
        await self.wait()
        raise AssertionError("sixty seconds are over")


async def test_work_that_is_done_calls_the_alarm_off() -> None:
    alarm = Alarm()
    assert await run_with_alarm(alarm.watch(), says("done")) == "done"
    assert alarm.cleared == 1


async def test_an_alarm_ends_the_work_when_it_has_cleared_up() -> None:
    work = ClearsUp()
    with pytest.raises(GuestError, match="it died"):
        await run_with_alarm(rings(0.01), work.wait())
    assert work.cleared == 1


async def test_work_that_fails_just_before_the_alarm_is_told_by_the_alarms_cause() -> None:
    with pytest.raises(GuestError, match="it died"):
        await run_with_alarm(rings(0.03), fails(0.01), grace=10)
    with pytest.raises(GuestError, match="it went wrong"):
        await run_with_alarm(rings(30), fails(0.01), grace=0.02)


async def test_what_the_work_raises_while_it_is_called_off_does_not_hide_the_alarm() -> None:
    async def falls_over() -> str:
        try:
            return await says("never", 60)
        finally:
            raise WorkloadError("connection lost")

    with pytest.raises(GuestError, match="it died"):
        await run_with_alarm(rings(0.01), falls_over())


async def test_a_stop_from_outside_ends_both() -> None:
    alarm, work = Alarm(), ClearsUp()
    running = asyncio.ensure_future(run_with_alarm(alarm.watch(), work.wait()))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (alarm.cleared, work.cleared) == (1, 1)


async def test_what_runs_to_the_end_does_so_although_it_is_called_off_twice() -> None:
    one = ClearsUp()
    task = asyncio.ensure_future(shielded(one.clear_up()))
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert one.cleared == 1
    assert await shielded(says("the end")) == "the end"
