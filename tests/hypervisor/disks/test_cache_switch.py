"""All guests are switched or none: dirty pages first, in time, and what was switched is put back after a failure."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hypervisor.block_layer import block_layer, restored_guest
from vmlab.hypervisor.disks.cache_proof import direct_flags
from vmlab.hypervisor.disks.cache_switch import (
    BlockNodes,
    DrainTooLong,
    SwitchBrokenOff,
    Written,
    drain,
    switch,
    write_dirty,
)
from vmlab.model.errors import HypervisorError

SLOW, QUICK = Written(5.0, 1000), Written(0.0, 10)


@dataclass
class Nodes(BlockNodes):
    """Disks in memory. `refuse` are the reopenings that fail, by their number from 1; `log` is shared by all."""

    name: str
    log: list[object]
    refuse: frozenset[int] = frozenset()
    direct: bool = False
    asked: int = 0

    @property
    def files(self) -> list[Path]:
        return []

    def reopen(self, *, direct: bool) -> float:
        self.asked += 1
        self.log.append((self.name, direct))
        if self.asked in self.refuse:
            raise HypervisorError(f"{self.name}: no")
        self.direct = direct
        return 0.25


class Host:
    """Writes dirty pages as the test says; after that there are few."""

    def __init__(self, log: list[object], *written: Written) -> None:
        self._written = list(written)
        self._log = log

    def write(self, files: Iterable[Path]) -> Written:
        self._log.append(list(files))
        return self._written.pop(0) if self._written else QUICK


def guests(log: list[object], **refuse: set[int]) -> dict[str, Nodes]:
    return {name: Nodes(name, log, frozenset(refuse.get(name, ()))) for name in ("one", "two", "three")}


def directs(those: Mapping[str, Nodes]) -> list[bool]:
    return [nodes.direct for nodes in those.values()]


async def test_dirty_pages_are_written_until_few_are_left() -> None:
    log: list[object] = []
    done = await drain([Path("/b"), Path("/a"), Path("/b")], 60, Host(log, SLOW, SLOW, QUICK).write)
    assert log == [[Path("/a"), Path("/b")]] * 3
    assert done.written_bytes == 2010


async def test_a_kernel_that_does_not_tell_dirty_pages_is_no_obstacle() -> None:
    done = await drain([], 60, Host([], SLOW, Written(0.0, None)).write)
    assert done.written_bytes is None and done.seconds >= 0


async def test_dirty_pages_that_never_become_few_end_with_a_message() -> None:
    with pytest.raises(DrainTooLong, match=r"still dirty pages after 0.2 s of writing"):
        await drain([], 0.2, lambda _files: SLOW)


async def test_writing_that_hangs_ends_at_the_deadline_as_well() -> None:
    may_end = threading.Event()

    def write(_files: Iterable[Path]) -> Written:
        may_end.wait()
        return QUICK

    try:
        with pytest.raises(DrainTooLong):
            await drain([], 0.2, write)
    finally:
        may_end.set()


async def test_each_guest_is_switched_right_after_its_last_pages_were_written() -> None:
    log: list[object] = []
    those = guests(log)
    assert await switch(those, direct=True, write=Host(log).write) == {"one": 0.25, "two": 0.25, "three": 0.25}
    assert log == [[], ("one", True), [], ("two", True), [], ("three", True)]


async def test_after_a_refusal_the_guests_before_are_put_back() -> None:
    log: list[object] = []
    those = guests(log, two={1})
    with pytest.raises(SwitchBrokenOff, match="two: no; all disks are as they were"):
        await switch(those, direct=True, write=Host(log).write)
    assert directs(those) == [False] * 3
    assert [entry for entry in log if entry] == [("one", True), ("two", True), ("one", False), ("two", False)]


async def test_one_that_cannot_be_put_back_is_named() -> None:
    log: list[object] = []
    those = guests(log, one={2}, two={1})
    with pytest.raises(SwitchBrokenOff, match="two: no; one could not be put back"):
        await switch(those, direct=True, write=Host(log).write)
    assert directs(those) == [True, False, False]


def test_dirty_pages_of_a_file_are_counted_and_written(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.write_bytes(os.urandom(1 << 20))
    first, again = write_dirty([file]), write_dirty([file])
    if first.dirty_bytes is None:
        pytest.skip("this kernel does not tell dirty pages of a file")
    assert again.dirty_bytes == 0
    assert first.dirty_bytes in (0, 1 << 20), "all of it, unless the kernel was faster"


BLOCK = 64 * 1024
BLOCKS = 96
SWITCHES = int(os.environ.get("SWITCHES", "20"))
"""`SWITCHES=100 pytest` tries a hundred of them, which takes a minute on a slow machine."""


async def test_many_switches_under_writes_lose_nothing(tmp_path: Path) -> None:
    """The writer is an NBD client; every block that it wrote, last or first, is read back as it wrote it."""
    files, definitions = restored_guest(tmp_path, size=BLOCK * BLOCKS)
    place = f"nbd+unix:///disk?socket={tmp_path}/nbd"
    export = [
        *("--nbd-server", f"addr.type=unix,addr.path={tmp_path}/nbd"),
        *("--export", "nbd,id=disk,name=disk,node-name=libvirt-1-format,writable=on"),
    ]
    with block_layer(tmp_path, definitions, *export) as layer:
        nodes = BlockNodes(layer.process, layer)
        writing = asyncio.ensure_future(asyncio.to_thread(_commands, place, _writes(rounds=5)))
        direct = switches = 0
        while switches < SWITCHES or not writing.done():
            direct = 1 - direct
            await drain(nodes.files, 60)
            await switch({"web": nodes}, direct=bool(direct))
            assert [direct_flags(layer.process, file) for file in files] == [[bool(direct)]] * 3
            switches += 1
        assert "error" not in await writing and "fail" not in await writing
        read = await asyncio.to_thread(_commands, place, _reads())
    assert read.count("read ") >= BLOCKS and "fail" not in read and "error" not in read


def _writes(rounds: int) -> list[str]:
    """Every block, again and again; the last pattern of each is its number."""
    return [
        f"write -P {(number + again) % 251} {number * BLOCK} {BLOCK}"
        for again in range(rounds - 1, -1, -1)
        for number in range(BLOCKS)
    ]


def _reads() -> list[str]:
    return [f"read -P {number % 251} {number * BLOCK} {BLOCK}" for number in range(BLOCKS)]


def _commands(place: str, commands: list[str]) -> str:
    done = subprocess.run(
        ["qemu-io", "-f", "raw", place],
        input="\n".join([*commands, "quit"]),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout + done.stderr
