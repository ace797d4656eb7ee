"""Disks of the host that are full (those of the run, of its sockets, of snapshots, of images, of exports), and a disk
that answers nothing.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.faults.row import Rows
from tests.faults.world import SCENARIO, STRUCK, World, on_a_disk
from vmlab.system import kernel

ROWS = Rows()
_SEIZE, _INTERRUPT, _WALL = 0x4206, 0x4207, 0x40000000
_WRITING = on_a_disk("rw: randwrite, size: 48 MiB, time: 6 s")


def _reasons(event: dict[str, Any]) -> list[str]:
    """Why a cell or a run ended so."""
    return [*event.get("reasons", ()), *filter(None, [event.get("reason")])]


def _cause(world: World, words: str) -> str:
    """What the command, a cell or the run says of a full disk."""
    said = [reason for event in world.home.events() for reason in _reasons(event)]
    signs = ("No space left", " is full", "no room")
    told = [line.strip() for line in [*words.splitlines(), *said] if any(sign in line for sign in signs)]
    assert told, (words, said)
    return told[-1]


def _full_in_execute(world: World, text: str, mib: int, seconds: float = 90.0) -> str:
    """Fill the file system of state and disks while the second cell works."""
    world.small_disk(world.home.state, mib)
    # What a cell has still to write may fit into what its files have already; the disk of the next guest does not.
    running = world.run(text.replace("repeats: 2", "repeats: 3"))
    world.wait_for("WorkloadStarted", cell=STRUCK)
    world.strike()
    with world.filled(world.home.state):
        words = world.end_of(running, seconds)
        world.is_over()
        assert running.returncode not in (0, 130), f"exit code {running.returncode}"
    return f"exit code {running.returncode}: {_cause(world, words)}"


@ROWS.add(
    "full-run",
    "the file system of the run's store and disks is full while the second of three cells works",
    "the run ends, names the full disk, cell 1 kept",
    90,
)
def full_run(world: World) -> str:
    return _full_in_execute(world, SCENARIO, 600)


@ROWS.add(
    "full-guest-writes",
    "the same while the guest writes to its data disk",
    "the run ends, names the full disk, cell 1 kept",
    90,
)
def full_guest_writes(world: World) -> str:
    return _full_in_execute(world, _WRITING, 800)


@ROWS.add(
    "full-emulated-disk",
    "the file system behind an emulated disk is full while the guest writes",
    "the run ends, names the full disk, cell 1 kept",
    120,
)
def full_emulated_disk(world: World) -> str:
    return _full_in_execute(world, _WRITING + "host: {disk: hdd-7200}\n", 3000, 120)


@ROWS.add(
    "full-snapshot",
    "no room for the snapshot of a guest that is frozen",
    "the run ends, names the full disk, no partial snapshot stays",
    180,
)
def full_snapshot(world: World) -> str:
    small = world.cache / "snapshots"
    kernel.mount("tmpfs", str(small), "tmpfs", options="size=64m")
    world.strike()
    running = world.run()
    words = world.end_of(running, 170)
    world.is_over()
    assert running.returncode in (1, 3), f"exit code {running.returncode}"
    told = _cause(world, words)
    left = [path.name for path in small.iterdir() if path.is_dir() and (path / "ram").exists()]
    assert left == [], left
    return f"exit code {running.returncode}: {told}"


@ROWS.add(
    "full-sockets",
    "no room for the folder of the run's sockets",
    "refused before the start (exit code 3), names the place",
    30,
)
def full_sockets(world: World) -> str:
    world.home.runtime.mkdir(exist_ok=True)
    kernel.mount("tmpfs", str(world.home.runtime), "tmpfs", options="size=64k")
    world.strike()
    with world.filled(world.home.runtime):
        running = world.run()
        words = world.end_of(running, 60)
        assert running.returncode == 3 and str(world.home.runtime) in words, (running.returncode, words)
    world.is_over()
    return f"exit code 3: {words.strip().splitlines()[-1]}"


@ROWS.add(
    "full-image",
    "an image is built where 64 MiB are free",
    "it ends with the cause, and no partial image stays",
    240,
    guests=False,
)
def full_image(world: World) -> str:
    images = world.cache / "images"
    kernel.mount("tmpfs", str(images), "tmpfs", options="size=64m")
    world.strike()
    building = world.command("image", "build", "--force")
    words = world.end_of(building, 230)
    world.is_over()
    assert building.returncode in (1, 3), f"exit code {building.returncode}"
    assert "No space left" in words or "free" in words or "full" in words, words
    assert not [path for path in images.rglob("*") if path.stat().st_size > 2**20], "half an image stays"
    return f"exit code {building.returncode}: {words.strip().splitlines()[-1]}"


@ROWS.add(
    "full-export",
    "a recorded run is exported to a disk without room",
    "exit code 1 or 3 with the file's name, and no draft stays",
    60,
    guests=False,
)
def full_export(world: World) -> str:
    world.recorded()
    place = world.folder / "out"
    place.mkdir()
    kernel.mount("tmpfs", str(place), "tmpfs", options="size=16k")
    world.strike()
    exporting = world.command("export", "last", "-o", str(place / "run.vmlab"), "--format", "vmlab")
    words = world.end_of(exporting, 60)
    world.is_over()
    assert exporting.returncode in (1, 3), (exporting.returncode, words)
    assert "No space left" in words and str(place) in words, words
    assert list(place.iterdir()) == []
    return f"exit code {exporting.returncode}: {words.strip().splitlines()[-1]}"


@ROWS.add(
    "silent-disk",
    "the threads of the guest's QEMU that read and write its disks are stopped by a debugger while the guest reads",
    "reported in the record and by `vmlab top`, the cell failed after 120 s: its reason names guest, disk and time",
    300,
)
def silent_disk(world: World) -> str:
    running = world.run(on_a_disk("rw: randread, size: 16 MiB, time: 20 s").replace("repeats: 2", "repeats: 1"))
    world.wait_for("WorkloadStarted", 600, cell=1)
    world.strike(measured=False)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as tracer:
        stopped = tracer.submit(_stop_workers, world.qemu).result()
        tracer.submit(_await_ends, stopped)
        silent = world.wait_for("DiskSilent", 120, cell=1)
        reported = time.monotonic() - began
        shown = world.command("top", "--count", "1").communicate(timeout=60)[0]
        words = world.end_of(running, 240)
        failed = time.monotonic() - began
    world.is_over()
    ended = world.ended(1)
    assert silent["guest"] == "vm" and silent["seconds"] >= 30, silent
    assert f"t1-vm: no answer from its {silent['disk']} disk for " in shown, shown
    assert ended["outcome"] == "failed" and running.returncode == 1, (ended, words)
    (reason,) = [one for one in ended["reasons"] if "disk has answered nothing for " in one]
    assert reason.startswith("t1-vm: its ") and reason in words, (reason, words)
    return f"{len(stopped)} threads stopped, reported after {reported:.0f} s, over after {failed:.0f} s: {reason}"


def _stop_workers(qemu: int) -> set[int]:
    """Stop them, as ptrace(2) says, for as long as the calling thread lives; more may begin while they are found."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    stopped: set[int] = set()
    while found := {int(task.name) for task in Path(f"/proc/{qemu}/task").iterdir() if _is_worker(task)} - stopped:
        for thread in found:
            for request in (_SEIZE, _INTERRUPT):
                if ptrace(request, thread, None, None) != 0:
                    raise OSError(ctypes.get_errno(), f"cannot stop thread {thread}")
            stopped.add(thread)
    assert stopped, "QEMU has no thread that reads"
    return stopped


def _await_ends(threads: Iterable[int]) -> None:
    """As who traces threads has to: until then their process does not end."""
    for thread in threads:
        while os.WIFSTOPPED(os.waitpid(thread, _WALL)[1]):
            pass


def _is_worker(task: Path) -> bool:
    return (task / "comm").read_text().strip() == "worker"
