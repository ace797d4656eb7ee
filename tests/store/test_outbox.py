"""Events on their way to a store that cannot be written for a while, or for ever."""

import asyncio
import threading
import time
from pathlib import Path
from typing import cast

import pytest

from tests.fakes.store import FULL, FillableWriter
from tests.waiting import until
from vmlab.model.cell_event import PhaseEnded
from vmlab.model.errors import StoreError
from vmlab.model.event import Event, Notice
from vmlab.model.results import RawOutput
from vmlab.store.outbox import Outbox
from vmlab.store.reader import RunReader

SOON = 60.0


def note(number: int) -> Notice:
    return Notice(level="info", text=str(number))


def kept(path: Path) -> list[str]:
    with RunReader(path) as reader:
        return [event.text for _, event in reader.events() if isinstance(event, Notice)]


def until_refused(writer: FillableWriter, times: int = 1) -> None:
    end = time.monotonic() + SOON
    while writer.refused < times:
        assert time.monotonic() < end
        time.sleep(0.01)


async def test_what_was_said_is_in_the_store_when_it_has_settled(tmp_path: Path) -> None:
    outbox = Outbox(FillableWriter(tmp_path / "run.sqlite"))
    for number in range(100):
        outbox.append(note(number))
    outbox.raw(1, RawOutput("web", 1, "front", "ab", "text"))
    await outbox.settled()
    assert kept(outbox.writer.path) == [str(number) for number in range(100)]
    with RunReader(outbox.writer.path) as reader:
        assert len(reader.raw_outputs(1)) == 1
    outbox.close()
    outbox.close()
    outbox.writer.close()


async def test_what_is_said_while_the_disk_is_full_follows_in_order_when_there_is_room(tmp_path: Path) -> None:
    writer = FillableWriter(tmp_path / "run.sqlite")
    outbox = Outbox(writer)
    outbox.append(note(0))
    await outbox.settled()
    writer.full = True
    for number in range(1, 50):
        outbox.append(note(number))
    until_refused(writer, 2)
    writer.full = False
    async with asyncio.timeout(SOON):
        await outbox.settled()
    assert kept(writer.path) == [str(number) for number in range(50)]
    outbox.close()
    writer.close()


async def test_nobody_waits_for_a_disk_that_hangs(tmp_path: Path) -> None:
    outbox = Outbox(FillableWriter(tmp_path / "run.sqlite"))
    with outbox.writer._lock:
        for number in range(1000):
            outbox.append(note(number))
        settling = asyncio.ensure_future(outbox.settled())
        await asyncio.sleep(0)
        assert not settling.done()
    await settling
    assert len(kept(outbox.writer.path)) == 1000
    outbox.close()
    outbox.writer.close()


async def test_a_disk_that_stays_full_raises_the_alarm_and_what_was_said_is_still_kept(tmp_path: Path) -> None:
    writer = FillableWriter(tmp_path / "run.sqlite")
    outbox = Outbox(writer, patience=0.3)
    alarm = asyncio.ensure_future(outbox.overdue())
    outbox.append(note(0))
    await outbox.settled()
    await asyncio.sleep(0.5)
    assert not alarm.done(), "a quiet run is not overdue"
    writer.full = True
    outbox.append(note(1))
    async with asyncio.timeout(SOON):
        with pytest.raises(StoreError, match=FULL):
            await alarm
    writer.full = False
    outbox.append(note(2))
    outbox.close()
    assert kept(writer.path) == ["0", "1", "2"]
    writer.close()


class Clock:
    """In the place of the monotonic clock: it stands until a test moves it, however slow the disk is."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


async def test_a_write_that_hangs_raises_the_alarm_as_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("vmlab.store.outbox.time", clock)
    outbox = Outbox(FillableWriter(tmp_path / "run.sqlite"), hang=0.3)
    alarm = asyncio.ensure_future(outbox.overdue())
    outbox.append(note(0))
    await outbox.settled()
    await until(lambda: outbox._begun is None, "the thread rests")
    clock.now += 1000
    await asyncio.sleep(0.5)
    assert not alarm.done(), "a quiet run hangs nowhere"
    with outbox.writer._lock:
        outbox.append(note(1))
        await until(lambda: outbox._begun == clock.now, "the attempt")
        clock.now += 0.29
        await asyncio.sleep(0.5)
        assert not alarm.done(), "it may take so long"
        clock.now += 0.02
        async with asyncio.timeout(SOON):
            with pytest.raises(StoreError, match=r"run\.sqlite: an attempt has hung for 0\.3 s"):
                await alarm
    await outbox.settled()
    assert kept(outbox.writer.path) == ["0", "1"]
    outbox.close()
    outbox.writer.close()


def test_an_end_is_bounded_while_a_write_hangs(tmp_path: Path) -> None:
    outbox = Outbox(FillableWriter(tmp_path / "run.sqlite"))
    ends: list[str] = []

    def end() -> None:
        for close in (outbox.close, outbox.writer.close):
            with pytest.raises(StoreError) as refused:
                close(0.1)
            ends.append(str(refused.value).rpartition(": ")[2])

    with outbox.writer._lock:
        outbox.append(note(0))
        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(SOON)
        assert ends == ["some events are lost", "an attempt still hangs"]
    outbox._thread.join()
    outbox.writer.close()


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (Notice(level="info", text=cast("str", b"no text")), "must be called with a dataclass"),
        (Notice(level="info", text="a" * 2**22), "cannot be recorded: is larger than 4 MiB"),
        (PhaseEnded(cell=1, phase="execute", seconds=1e150), r"PhaseEnded: seconds cannot be 1e\+150"),
    ],
    ids=["bytes", "large", "number"],
)
async def test_an_event_that_can_never_be_written_does_not_hold_up_the_others(
    event: Event, why: str, tmp_path: Path
) -> None:
    outbox = Outbox(FillableWriter(tmp_path / "run.sqlite"))
    outbox.append(event)
    outbox.append(note(1))
    await outbox.settled()
    assert kept(outbox.writer.path) == ["1"]
    async with asyncio.timeout(SOON):
        with pytest.raises(StoreError, match=why):
            await outbox.overdue()
    with pytest.raises(StoreError, match="1 event is lost"):
        outbox.close()
    outbox.writer.close()


def test_an_end_on_a_full_disk_is_bounded_and_tells_what_is_lost(tmp_path: Path) -> None:
    writer = FillableWriter(tmp_path / "run.sqlite")
    outbox = Outbox(writer, patience=0.1)
    writer.full = True
    for number in range(3):
        outbox.append(note(number))
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"run\.sqlite could not be written to its end: 3 events are lost"):
        outbox.close(0.5)
    assert time.monotonic() - began < SOON
    writer.full = False
    writer.close()
