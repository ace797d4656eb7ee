"""What QEMU loads is what is compared, and a damaged state is named, whatever QEMU made of it."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integrity.damage import flip
from tests.waiting import until
from vmlab.hypervisor import frozen_guest
from vmlab.integrity.digests import CHUNK, FileDigests, describe
from vmlab.model.errors import HypervisorError, RefusedError, SnapshotError
from vmlab.system import kernel

SIZE = 5 * CHUNK + 12345


@pytest.fixture
def ram(tmp_path: Path) -> Path:
    folder = tmp_path / "web-123"
    folder.mkdir()
    (folder / "ram").write_bytes(os.urandom(SIZE))
    return folder / "ram"


def locked() -> int:
    """Bytes of memory that this process holds."""
    found = re.search(r"VmLck:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


class Qemu:
    """Takes part in the loading as QEMU does: reads the file that it is given, then ends with a status."""

    def __init__(self, status: str) -> None:
        self._status = status
        self._file = -1
        self.loaded = b""
        self.held = 0

    def qmp(self, _domain: Any, command: str, _arguments: Any = None, *, file: int | None = None) -> Any:
        if command == "getfd":
            assert file is not None
            self._file = os.dup(file)
        elif command == "query-migrate":
            self.held = locked()
            if self._file >= 0:
                with os.fdopen(self._file, "rb") as given:
                    self.loaded = given.read()
                self._file = -1
            return {"status": self._status, "error-desc": "load of migration failed"}
        return {}

    def let_go(self) -> bool:
        """Close the file that was handed over and never read, as QEMU does when it ends."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)
        return True


async def load(monkeypatch: pytest.MonkeyPatch, qemu: Qemu, ram: Path, expected: FileDigests) -> None:
    """Load, and see that neither memory nor descriptors stay held."""
    monkeypatch.setattr(frozen_guest, "qmp", qemu.qmp)
    before = psutil.Process().num_fds(), locked()
    state = frozen_guest.SharedState(ram, expected, 30)
    try:
        try:
            await frozen_guest.read_state(None, "web-1", state, 30)
        finally:
            await state.release()
    finally:
        # A thread that is abandoned lets go when its own step ends; QEMU's end of the file is the fake's.
        await until(lambda: qemu.let_go() and (psutil.Process().num_fds(), locked()) == before, "nothing is held")


async def test_a_whole_state_is_loaded_from_memory_that_is_held(monkeypatch: pytest.MonkeyPatch, ram: Path) -> None:
    qemu, before = Qemu("completed"), locked()
    await load(monkeypatch, qemu, ram, describe(ram))
    assert qemu.loaded == ram.read_bytes()
    assert qemu.held - before >= SIZE


async def test_guests_of_one_state_share_its_memory_and_its_comparison(
    monkeypatch: pytest.MonkeyPatch, ram: Path
) -> None:
    qemus = {name: Qemu("completed") for name in ("web-1", "web-2", "web-3")}
    compared: list[frozen_guest.HeldState] = []
    room: list[int] = []
    before = locked()
    original = frozen_guest.HeldState.compare

    def compare(state: frozen_guest.HeldState) -> None:
        compared.append(state)
        original(state)

    monkeypatch.setattr(frozen_guest.HeldState, "compare", compare)
    monkeypatch.setattr(frozen_guest, "qmp", lambda domain, *words, **more: qemus[domain].qmp(domain, *words, **more))
    state = frozen_guest.SharedState(ram, describe(ram), 30)
    await asyncio.gather(*(frozen_guest.read_state(name, name, state, 30, room.append) for name in qemus))
    assert SIZE <= locked() - before < 2 * SIZE
    await state.release()
    assert locked() == before
    assert [qemu.loaded for qemu in qemus.values()] == [ram.read_bytes()] * 3
    assert len(compared) == 1 and room == [SIZE] * 3


async def test_a_guest_that_is_given_up_does_not_end_the_comparison_for_others(
    monkeypatch: pytest.MonkeyPatch, ram: Path
) -> None:
    expected = describe(ram)
    flip(ram)
    monkeypatch.setattr(frozen_guest, "qmp", Qemu("completed").qmp)
    state = frozen_guest.SharedState(ram, expected, 30)
    given_up = asyncio.ensure_future(state.hold())
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(SnapshotError, match="ram is not what it was"):
        await frozen_guest.read_state(None, "web-1", state, 30)
    await state.release()


@pytest.mark.parametrize("offset", [0, 3 * CHUNK + 5, SIZE - 1])
@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_one_flipped_bit_is_damage_whatever_qemu_says(
    monkeypatch: pytest.MonkeyPatch, ram: Path, offset: int, status: str
) -> None:
    expected = describe(ram)
    flip(ram, offset)
    with pytest.raises(SnapshotError, match="snapshot web-123 is damaged: ram is not what it was") as caught:
        await load(monkeypatch, Qemu(status), ram, expected)
    assert caught.value.snapshot == "web-123" and f"from byte {offset // CHUNK * CHUNK} on" in str(caught.value)


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
async def test_a_state_of_another_length_never_reaches_qemu(
    monkeypatch: pytest.MonkeyPatch, ram: Path, size: int
) -> None:
    expected, qemu = describe(ram), Qemu("completed")
    os.truncate(ram, size)
    with pytest.raises(SnapshotError, match=f"ram is {size} bytes long and not {SIZE}"):
        await load(monkeypatch, qemu, ram, expected)
    assert qemu.loaded == b""


async def test_a_loading_that_is_called_off_lets_go_of_the_memory(monkeypatch: pytest.MonkeyPatch, ram: Path) -> None:
    """At every moment: while it is read in, while QEMU reads, and before either."""
    expected = describe(ram)
    original = kernel.held_in_memory

    @contextmanager
    def slowly(descriptor: int, size: int) -> Iterator[None]:
        time.sleep(0.1)
        with original(descriptor, size):
            yield

    monkeypatch.setattr(frozen_guest, "held_in_memory", slowly)
    for moment in (0.0, 0.05, 0.15, 0.3):
        loading = asyncio.ensure_future(load(monkeypatch, Qemu("active"), ram, expected))
        await asyncio.sleep(moment)
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading


async def test_a_missing_state_is_damage(monkeypatch: pytest.MonkeyPatch, ram: Path) -> None:
    expected = describe(ram)
    ram.unlink()
    with pytest.raises(SnapshotError, match="ram cannot be read: No such file"):
        await load(monkeypatch, Qemu("completed"), ram, expected)


async def test_a_whole_state_that_qemu_refuses_is_not_called_damaged(
    monkeypatch: pytest.MonkeyPatch, ram: Path
) -> None:
    with pytest.raises(HypervisorError, match="web-1: loading: load of migration failed") as caught:
        await load(monkeypatch, Qemu("failed"), ram, describe(ram))
    assert not isinstance(caught.value, SnapshotError)


@contextmanager
def no_memory(_descriptor: int, _size: int) -> Iterator[None]:
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    yield


async def test_without_the_memory_to_hold_it_nothing_is_loaded_and_no_snapshot_blamed(
    monkeypatch: pytest.MonkeyPatch, ram: Path
) -> None:
    monkeypatch.setattr(frozen_guest, "held_in_memory", no_memory)
    qemu, expected = Qemu("completed"), describe(ram)
    with pytest.raises(RefusedError, match="ram cannot be held in memory while it loads: Cannot allocate memory"):
        await load(monkeypatch, qemu, ram, expected)
    assert qemu.loaded == b""
    flip(ram)
    with pytest.raises(SnapshotError, match="ram is not what it was"):
        await load(monkeypatch, qemu, ram, expected)


async def test_a_disk_that_does_not_give_the_state_back_is_damage(monkeypatch: pytest.MonkeyPatch, ram: Path) -> None:
    expected = describe(ram)

    def fails(_descriptor: int, _buffers: object, _offset: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(frozen_guest, "held_in_memory", no_memory)
    monkeypatch.setattr(os, "preadv", fails)
    with pytest.raises(SnapshotError, match="ram cannot be read: Input/output error"):
        await load(monkeypatch, Qemu("completed"), ram, expected)
