"""Data disks in a volume group of the host's: made among its own LVM and udev, proved, and removed whatever happens."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.host.inside.lab import (
    command,
    measured,
    processes,
    require,
    run_folder,
    started,
    stopped,
    tell,
    vmlab,
    wait_until,
)

_SCENARIO = Path(__file__).with_name("volumes.yaml")
_FOLDER = Path("/var/lib/checks-disks")
_FILE = Path("/var/lib/checks-group.raw")
_GROUP = "checks"
_FOREIGN = "vmlab.other.t1-vm"
"""A volume of somebody's with a name much like the lab's own, and a file."""
_AT_WORK_SECONDS = 900.0
_END_SECONDS = 120.0
_LONG = ("--set", f"axes.place=lvm:{_GROUP}", "--set", "workloads.blocks.time=600 s")


def tried() -> None:
    """A run of both places, then one whose runner is killed and one whose launcher is."""
    with _group():
        before = _seen()
        document = measured(str(_SCENARIO))
        places = {str(cell["axes"]["place"]): cell for cell in document["cells"]}
        require(set(places) == {f"lvm:{_GROUP}", f"folder:{_FOLDER}"}, f"cells of {sorted(places)}")
        for place, cell in places.items():
            _require_proof(place, cell)
        require(_seen() == before, f"after the run there is {_seen()}")
        for victim in ("runner", "launcher"):
            _kill(victim)
            cleaned = json.loads(vmlab("clean", "--json"))
            require(not any(one["left"] for one in cleaned["runs"]), f"clean could not remove {cleaned['runs']}")
            require(_seen() == before, f"after kill -9 of the {victim} there is {_seen()}")


def _require_proof(place: str, cell: dict[str, Any]) -> None:
    (proof,) = [one for one in cell["lever_proof"] if one["lever"] == "backing"]
    tell(f"{place}: {proof}")
    require(proof["agrees"] and proof["found"] == place, f"{place} is not proved: {proof}")


def _kill(victim: str) -> None:
    run = started(str(_SCENARIO), *_LONG)
    with stopped(run):
        wait_until(lambda: any(run in name for name in _seen()), _AT_WORK_SECONDS, "the guest's volume")
        pid = int(json.loads((run_folder(run) / "runner.json").read_text())[f"{victim}_pid"])
        tell(f"kill -9 {pid} ({victim})")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not processes(run), _END_SECONDS, f"the end of a run without its {victim}")


def _seen() -> set[str]:
    volumes = command("lvs", "--noheadings", "-o", "lv_full_name,lv_tags").split("\n")
    return {" ".join(line.split()) for line in volumes if line.strip()} | {str(file) for file in _FOLDER.iterdir()}


@contextmanager
def _group() -> Iterator[None]:
    """A volume group on a loop device, and a folder, each with something of somebody's in it."""
    _FOLDER.mkdir()
    (_FOLDER / f"{_FOREIGN}.0123456789abcdef.raw").write_text("somebody's")
    with _FILE.open("wb") as file:
        file.truncate(2**30)
    device = command("losetup", "--find", "--show", str(_FILE)).strip()
    try:
        command("vgcreate", _GROUP, device)
        command("lvcreate", "--yes", "--size", "16m", "--name", _FOREIGN, "--addtag", "vmlab.other", _GROUP)
        yield
    finally:
        command("vgremove", "--force", "--yes", _GROUP)
        command("losetup", "--detach", device)
        _FILE.unlink()
        (_FOLDER / f"{_FOREIGN}.0123456789abcdef.raw").unlink()
        _FOLDER.rmdir()
