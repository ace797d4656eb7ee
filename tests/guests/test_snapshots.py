"""Snapshots on this machine: made once, found, held, evicted; nothing half-made, whatever ends the maker."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integrity.damage import flip
from tests.waiting import until
from vmlab.guests import snapshots
from vmlab.guests.cached import collection
from vmlab.guests.cached.locks import USE_LOCK, Lock
from vmlab.guests.snapshots import SnapshotRecipe, image_digest
from vmlab.integrity.digests import seal
from vmlab.integrity.disk_reading import verify
from vmlab.model.errors import GuestError, HypervisorError, RefusedError, SnapshotError, UsageError
from vmlab.system.removal import Removals

RECIPE = SnapshotRecipe(image="1" * 64, machine={"vcpus": 1}, roles=("web", "mail"), preparation={"seed": 1})
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("VMLAB_SNAPSHOT_LIMIT", raising=False)
    return tmp_path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    disk = tmp_path / "root.raw"
    disk.touch()
    return disk


def fill(size: int = 8192, ram: bytes = b"r") -> Callable[[Path], Awaitable[None]]:
    """A builder that leaves the three files of a frozen guest."""

    async def build(folder: Path) -> None:
        (folder / "ram").write_bytes(ram * size)
        (folder / "disk.qcow2").write_bytes(b"d" * 4096)
        (folder / "machine.json").write_text("{}")

    return build


def nobody(words: str) -> None:
    raise AssertionError(f"nothing was to be told, and this was: {words}")


def kept() -> set[str]:
    return {path.name for path in snapshots.snapshots_folder().iterdir() if path.name != ".locks"}


async def make(recipe: SnapshotRecipe, base: Path, size: int = 8192) -> snapshots.Snapshot:
    return await snapshots.make(recipe, base, fill(size), nobody)


async def test_a_snapshot_is_made_once_and_found_again(base: Path) -> None:
    assert snapshots.find(RECIPE, nobody) is None
    made = await make(RECIPE, base)
    assert made.id.startswith("mail-web-") and kept() == {made.id}

    async def never(_folder: Path) -> None:
        raise AssertionError("made twice")

    assert await snapshots.make(RECIPE, base, never, nobody) == made == snapshots.find(RECIPE, nobody)
    (listed,) = snapshots.list_snapshots()
    assert (listed.id, listed.whole, listed.in_use) == (made.id, True, False)


@pytest.mark.parametrize(
    "other",
    [
        {"image": "2" * 64},
        {"machine": {"vcpus": 2}},
        {"roles": ("web",)},
        {"preparation": {"seed": 2}},
    ],
)
def test_whatever_differs_makes_another_address(other: dict[str, Any]) -> None:
    assert replace(RECIPE, **other).id != RECIPE.id
    assert replace(RECIPE, roles=("mail", "web")).id == RECIPE.id


async def test_the_digest_is_that_of_ram_and_disk(base: Path) -> None:
    first = await make(RECIPE, base)
    second = await make(replace(RECIPE, preparation=2), base)
    third = await snapshots.make(replace(RECIPE, preparation=3), base, fill(ram=b"R"), nobody)
    assert first.sha256 == second.sha256 != third.sha256


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda folder: os.truncate(folder / "ram", 100), "ram is 100 bytes long and not 8192"),
        (lambda folder: (folder / "disk.qcow2").unlink(), "disk.qcow2 is missing"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "damaged"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), "manifest.json is not what was written"),
        (lambda folder: flip(folder / "manifest.json"), "manifest.json is not what was written"),
        (lambda folder: flip(folder / "machine.json"), "machine.json is not what was written"),
        (lambda folder: (folder / "manifest.json").write_text(seal({"schema": "x/1"})), "manifest.json is not one"),
    ],
)
async def test_a_damaged_one_is_discarded_with_a_word_and_made_again(
    base: Path, damage: Callable[[Path], object], word: str
) -> None:
    made = await make(RECIPE, base)
    damage(made.folder)
    told: list[str] = []
    again = await snapshots.make(RECIPE, base, fill(), told.append)
    assert len(told) == 1 and word in told[0] and again.sha256 == made.sha256
    assert kept() == {made.id}


@pytest.mark.parametrize("name", ["ram", "disk.qcow2", "machine.json"])
async def test_one_flipped_bit_differs_from_what_the_manifest_says(base: Path, name: str) -> None:
    made = await make(RECIPE, base)
    expected = {made.folder / one: digests for one, digests in made.files.items()}
    assert made.files.keys() == {"ram", "disk.qcow2", "machine.json"} and verify(expected).faults == {}
    flip(made.folder / name)
    assert verify(expected).faults.keys() == {made.folder / name}


async def test_the_list_does_not_read_ram_and_disk(base: Path) -> None:
    made = await make(RECIPE, base)
    flip(made.folder / "ram")
    assert [one.whole for one in snapshots.list_snapshots()] == [True]
    flip(made.folder / "manifest.json")
    assert [one.whole for one in snapshots.list_snapshots()] == [False]


@pytest.mark.parametrize(
    ("failure", "seen"),
    [(GuestError("no"), GuestError), (OSError(28, "No space left on device"), HypervisorError)],
)
async def test_a_builder_that_fails_leaves_nothing(base: Path, failure: Exception, seen: type[Exception]) -> None:
    async def build(folder: Path) -> None:
        await fill()(folder)
        raise failure

    with pytest.raises(seen):
        await snapshots.make(RECIPE, base, build, nobody)
    assert kept() == set()


async def test_a_cancelled_builder_leaves_nothing(base: Path) -> None:
    begun = asyncio.Event()

    async def build(folder: Path) -> None:
        await fill()(folder)
        begun.set()
        await asyncio.sleep(3600)

    under_way = asyncio.ensure_future(snapshots.make(RECIPE, base, build, nobody))
    await begun.wait()
    under_way.cancel()
    with pytest.raises(asyncio.CancelledError):
        await under_way
    assert kept() == set()
    await make(RECIPE, base)


async def test_the_second_maker_waits_and_finds_the_firsts(base: Path) -> None:
    made = 0
    told: list[str] = []

    async def build(folder: Path) -> None:
        nonlocal made
        made += 1
        await until(lambda: told, "that the second one waits")
        await fill()(folder)

    first, second = await asyncio.gather(*(snapshots.make(RECIPE, base, build, told.append) for _ in range(2)))
    assert (made, first) == (1, second)
    assert len(told) == 1 and "being made by another" in told[0]


@pytest.fixture
def held_gate(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The lock that others have for moments only, held by one who hangs."""
    monkeypatch.setattr(collection, "GATE_SECONDS", 1.0)
    path = snapshots.snapshots_folder() / ".locks" / "gate"
    path.parent.mkdir(parents=True)
    lock = Lock.try_exclusive(path)
    assert lock is not None
    yield path
    lock.release()


async def test_a_gate_whose_holder_hangs_is_named_and_the_loop_goes_on_meanwhile(base: Path, held_gate: Path) -> None:
    waiting = asyncio.ensure_future(make(RECIPE, base))
    turns = 0
    while not waiting.done():
        await asyncio.sleep(0.01)
        turns += 1
    with pytest.raises(RefusedError, match=re.escape(f"another process has held {held_gate} for longer than 1 s")):
        await waiting
    assert turns > 2, "a stop of the run could be heard"
    with pytest.raises(RefusedError, match="another process has held"):
        snapshots.SNAPSHOTS.clear_unfinished()
    assert kept() == set()


@pytest.mark.usefixtures("held_gate")
async def test_waiting_at_the_gate_can_be_called_off(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "GATE_SECONDS", 3600.0)
    waiting = asyncio.ensure_future(make(RECIPE, base))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def another_maker(base: Path) -> subprocess.Popen[str]:
    """Another process that has begun to make RECIPE's snapshot when it says so."""
    program = (
        "import asyncio, sys; from pathlib import Path; from tests.guests.test_snapshots import RECIPE, fill, nobody\n"
        "from vmlab.guests import snapshots\n"
        "async def build(folder):\n"
        "    await fill()(folder); print('begun', flush=True); await asyncio.sleep(3600)\n"
        "asyncio.run(snapshots.make(RECIPE, Path(sys.argv[1]), build, nobody))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    argv = [sys.executable, "-c", program, str(base)]
    return subprocess.Popen(argv, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True)


async def test_what_a_killed_maker_left_goes_with_the_next(base: Path) -> None:
    maker = another_maker(base)
    assert maker.stdout is not None
    assert maker.stdout.readline() == "begun\n"
    (under_way,) = kept()
    other = await make(replace(RECIPE, preparation="other"), base)
    assert kept() == {under_way, other.id}, "what is being made is left alone"
    maker.send_signal(signal.SIGKILL)
    maker.communicate()
    third = await make(replace(RECIPE, preparation="third"), base)
    assert kept() == {other.id, third.id}


async def test_a_leftover_that_cannot_be_removed_is_named_once(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "remove_trees", lambda _folders: Removals(left=(f"{base.parent}: busy",)))
    told: list[str] = []
    for number in range(2):
        await snapshots.make(replace(RECIPE, preparation=number), base, fill(), told.append)
    assert told == [f"what an earlier process left cannot be removed, and is passed over: {base.parent}: busy"]


async def test_the_one_used_longest_ago_goes_first_and_never_one_in_use(base: Path) -> None:
    made = [await make(replace(RECIPE, preparation=number), base, 2**20) for number in range(4)]
    for at, one in enumerate(made):
        os.utime(one.folder / USE_LOCK, (1000 + at, 1000 + at))
    size = snapshots.list_snapshots()[0].bytes
    with made[0].held():
        os.utime(made[0].folder / USE_LOCK, (1, 1))
        assert snapshots.SNAPSHOTS.evict(2 * size) == [made[1].id, made[2].id]
        assert kept() == {made[0].id, made[3].id}
        with pytest.raises(RefusedError, match="in use"):
            snapshots.SNAPSHOTS.remove(made[0].id)
        assert not snapshots.discard(made[0].folder, "does not load", lambda _words: None)
    assert snapshots.SNAPSHOTS.evict(0, keep=made[3].id) == [made[0].id]


async def test_holding_counts_as_use_and_fails_on_what_has_gone(base: Path) -> None:
    made = await make(RECIPE, base)
    os.utime(made.folder / USE_LOCK, (1, 1))
    with made.held():
        assert snapshots.list_snapshots()[0].used > 1e9
    snapshots.SNAPSHOTS.remove(made.id)
    with pytest.raises(SnapshotError, match="removed just now"), made.held():
        pass
    with pytest.raises(RefusedError, match="there is no snapshot"):
        snapshots.SNAPSHOTS.remove(made.id)


async def test_making_one_evicts_others_beyond_the_limit(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = await make(replace(RECIPE, preparation="old"), base, 2**20)
    monkeypatch.setenv("VMLAB_SNAPSHOT_LIMIT", "1 MiB")
    told: list[str] = []
    new = await snapshots.make(RECIPE, base, fill(2**20), told.append)
    assert kept() == {new.id} and old.id in told[0]
    monkeypatch.setenv("VMLAB_SNAPSHOT_LIMIT", "much")
    with pytest.raises(UsageError, match="VMLAB_SNAPSHOT_LIMIT needs a number"):
        snapshots.size_limit()


async def test_without_its_image_a_snapshot_is_of_no_use(base: Path) -> None:
    made = await make(RECIPE, base)
    base.unlink()
    assert [one.whole for one in snapshots.list_snapshots()] == [False]
    assert snapshots.SNAPSHOTS.evict(2**40) == [made.id]


def test_an_image_built_anew_has_another_digest(tmp_path: Path) -> None:
    manifest = {"files": {"root.raw": {"size": 1, "sha256": "ab"}}, "command_line": "", "created": 1}
    (tmp_path / "manifest.json").write_text(seal({**manifest, "schema": "vmlab.image/2"}))
    assert image_digest(tmp_path / "root.raw") == "ab"


@pytest.mark.parametrize("name", ["my-notes", ".making-my-notes", ".removing-my-notes-1"])
async def test_a_folder_that_only_lies_among_snapshots_is_somebodys_data(name: str) -> None:
    theirs = snapshots.snapshots_folder() / name
    theirs.mkdir(parents=True)
    (theirs / "thesis.txt").write_text("precious")
    assert snapshots.list_snapshots() == []
    assert snapshots.SNAPSHOTS.evict(0) == []
    assert snapshots.SNAPSHOTS.clear_unfinished() == Removals()
    with pytest.raises(RefusedError, match="there is no snapshot"):
        snapshots.SNAPSHOTS.remove(name)
    assert (theirs / "thesis.txt").read_text() == "precious"
