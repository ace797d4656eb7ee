"""One flipped bit below guests: in the image, in a snapshot's RAM, in its disk."""

from __future__ import annotations

import shutil
import subprocess

from tests.faults.row import Act, Rows
from tests.faults.world import SCENARIO, World
from tests.integrity.damage import flip
from vmlab.system import kernel

ROWS = Rows()
_SINGLE = SCENARIO.replace("repeats: 2", "repeats: 1")


@ROWS.add(
    "flip-image",
    "one bit of the guests' base image is flipped",
    "refused before the start (exit code 3), names the file and what makes it again",
    60,
)
def flip_image(world: World) -> str:
    images = world.cache / "images"
    apart = world.folder / "images"
    subprocess.run(["cp", "-r", "--sparse=always", "--reflink=auto", str(images), str(apart)], check=True)
    kernel.mount(str(apart), str(images), flags=kernel.MS_BIND)
    # An older image may stand beside the one that is used.
    for disk in images.glob("vmlab-*/root.raw"):
        flip(disk, 1024)
    world.strike()
    running = world.run(_SINGLE)
    words = world.end_of(running, 120)
    world.is_over()
    kernel.unmount(str(images))
    assert running.returncode == 3, (running.returncode, words)
    told = [line.strip() for line in words.splitlines() if "root.raw is not what it was" in line]
    assert told, words
    assert not list(world.home.state.rglob("vmlab/runs/2*/disks/*.qcow2")), "a guest had a disk"
    return f"exit code 3: {told[0]}"


def _flipped(name: str) -> Act:
    def act(world: World) -> str:
        first = world.run(_SINGLE)
        words = world.end_of(first, 300)
        assert first.returncode == 0, words
        apart, kept = world.folder / "snapshots", world.cache / "snapshots"
        subprocess.run(["cp", "-r", "--sparse=always", "--reflink=auto", str(kept), str(apart)], check=True)
        kernel.mount(str(apart), str(kept), flags=kernel.MS_BIND)
        for file in kept.glob(f"plain-*/{name}"):
            flip(file)
        shutil.rmtree(world.store.parent)
        world.strike()
        again = world.run(_SINGLE)
        words = world.end_of(again, 240)
        world.is_over()
        assert again.returncode == 0, (again.returncode, words)
        told = [line for line in words.splitlines() if "is discarded" in line]
        assert told and f"{name} is not what it was" in told[0], words
        return f"{told[0].strip()}; passed"

    return act


for _name, _what in (("ram", "RAM"), ("disk.qcow2", "disk")):
    ROWS.add(
        f"flip-{_name.split('.')[0]}",
        f"one bit of a snapshot's {_what} is flipped",
        "the snapshot is discarded, named, and made again; the run passes",
        240,
    )(_flipped(_name))
