"""A cell whose guests are on two hosts, as each of them waits for the other one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from tests.fleet.local_hosts import FACTS, LINKED
from vmlab.guests.ssh_keys import RunKeys
from vmlab.lab.cell.linked_half import LinkedHalf
from vmlab.lab.commands.coming_cells import ComingCells
from vmlab.lab.commands.released_cells import ReleasedCells
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.addresses import addresses, macs
from vmlab.model.errors import CommandFailed, GuestError, UsageError
from vmlab.model.event import Event, HalfReached, LinkMeasured
from vmlab.plan.other_host import half_of
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides


async def _for_ever(awaited: Awaitable[bool]) -> bool | None:
    return await awaited


async def _not_at_all(awaited: Awaitable[bool]) -> bool | None:
    return None


def _half(events: list[Event], patiently: object = _for_ever) -> LinkedHalf:
    return LinkedHalf(3, "here", b"s" * 32, events.append, patiently)  # type: ignore[arg-type]


async def test_a_stage_of_the_other_host_is_waited_for() -> None:
    """Also one that it has come to before."""
    events: list[Event] = []
    half = _half(events)
    waiting = asyncio.ensure_future(half.until("ready"))
    half.proceed(3, "emptied")
    await asyncio.sleep(0)
    assert not waiting.done()
    half.proceed(3, "ready")
    half.proceed(3, "ready")
    await asyncio.wait_for(waiting, 30)
    await asyncio.wait_for(half.until("emptied"), 30)
    half.reach("prepared")
    (said,) = events
    assert isinstance(said, HalfReached) and (said.cell, said.stage) == (3, "prepared")
    with pytest.raises(UsageError, match="cell 4 does not run"):
        half.proceed(4, "ready")


async def test_nobody_is_waited_for_who_is_heard_of_no_more() -> None:
    """The cell fails then."""
    with pytest.raises(CommandFailed, match="nobody said that the other host is ready"):
        await _half([], _not_at_all).until("ready")


async def test_a_round_is_measured_where_a_port_is_closed() -> None:
    """By this machine's own loopback, on which nothing listens at that port."""
    events: list[Event] = []
    await _half(events).measure("127.0.0.1")
    (said,) = events
    assert isinstance(said, LinkMeasured)
    assert said.rounds == 10
    assert 0 < said.least_ms <= said.median_ms <= said.most_ms < 10_000


async def test_an_address_without_an_answer_is_an_error() -> None:
    """As one that no route leads to."""
    with pytest.raises(GuestError, match="no answer over the link"):
        await _half([]).measure("255.255.255.255")


def test_both_hosts_make_the_same_keys_of_one_secret() -> None:
    """Each guest has another one, and another secret gives others."""
    one, same, other = (RunKeys.of_secret(secret * 32) for secret in (b"a", b"a", b"b"))
    for keys in (one, same, other):
        keys.add(["t1-client", "t1-server"])
    assert one.authorized_line() == same.authorized_line() != other.authorized_line()
    lines = [keys.hosts[guest].export_public_key() for keys in (one, same) for guest in keys.hosts]
    assert lines[:2] == lines[2:]
    assert len({one.client.export_public_key(), *lines}) == 3
    assert one.host_private("t1-server").startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----")


def test_addresses_come_of_all_guests_of_a_cell() -> None:
    """Those of each half alone would be the same."""
    cell = make_plan(read(Path("probe.yaml"), LINKED), Overrides(), FACTS).cells[0]
    assert len(set(addresses(cell.guests).values())) == len(set(macs(cell.guests).values())) == 2
    halves = (half_of(cell, "here"), half_of(cell, "other"))
    assert len({address for half in halves for address in addresses(half.guests).values()}) == 1


async def test_a_cell_is_released_once_more_as_another_attempt(tmp_path: Path) -> None:
    """And the runner has it still."""
    cells = make_plan(read(Path("probe.yaml"), LINKED), Overrides(), FACTS).cells
    released, coming = ReleasedCells(60.0), ComingCells(RunFolder("x", tmp_path), cells, lambda _event: None)
    for attempt, secret in ((1, b"a"), (1, b"a"), (2, b"b")):
        released.release(1, secret=secret, attempt=attempt)
    released.release(None)
    assert [await released.next() for _ in range(3)] == [1, 1, None]
    assert released.secret_of(1) == b"b"
    assert coming.take_numbered(1) == coming.take_numbered(1) == cells[0]
    with pytest.raises(UsageError):
        coming.take_numbered(99)
