"""Steps side by side: results in order, one failure as itself, nothing left running."""

import asyncio

import pytest

from vmlab.model.errors import GuestError
from vmlab.model.together import together


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

    async def wait(self) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            self.cleared += 1
        return ""


async def test_results_come_in_the_order_of_the_steps() -> None:
    assert await together([says("slow", 0.02), says("quick")]) == ["slow", "quick"]
    assert await together([]) == []


async def test_a_failure_is_raised_as_itself_when_the_others_have_cleared_up() -> None:
    neighbour = ClearsUp()
    with pytest.raises(GuestError, match="it went wrong"):
        await together([neighbour.wait(), fails()])
    assert neighbour.cleared == 1


async def test_what_failed_because_of_a_failure_does_not_hide_it() -> None:
    async def loses_its_connection() -> str:
        try:
            return await says("never", 60)
        except asyncio.CancelledError:
            raise OSError("connection lost") from None

    with pytest.raises(GuestError, match="it went wrong"):
        await together([loses_its_connection(), fails(0.01)])


async def test_failures_on_two_floors_do_not_tear_a_step_out_of_its_clearing_up() -> None:
    below = [ClearsUp(), ClearsUp()]
    floors = [together([one.wait(), fails(after)]) for one, after in zip(below, (0.0, 0.01), strict=True)]
    with pytest.raises(GuestError):
        await together(floors)
    assert [one.cleared for one in below] == [1, 1]


async def test_a_cancellation_from_outside_is_not_hidden_by_what_it_made_fail() -> None:
    async def fails_when_cancelled() -> str:
        try:
            return await says("never", 60)
        except asyncio.CancelledError:
            raise GuestError("the connection was lost") from None

    task = asyncio.ensure_future(together([fails_when_cancelled()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
