"""Shows an image with the data of two tiles, and tells what is seen; ``hang`` waits inside to be killed."""

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from vmlab.hypervisor.disks.host_files import host_data, mounted_root, root_with_data
from vmlab.hypervisor.journal import Journal
from vmlab.model.names import WORKLOADS_FOLDER
from vmlab.system.removal import mounts_below


def names(folder: Path) -> list[str]:
    """What is in `folder`."""
    return sorted(path.name for path in folder.iterdir())


def main(disk: str, folder: str, end: str) -> None:
    """Print one line of JSON, of what was seen within and after; with ``hang`` an empty one."""
    place = Path(folder)
    disks, journal = place / "disks", Journal(place / "journal.jsonl")
    disks.mkdir()
    with mounted_root(Path(disk), place, place.name, journal) as root, ExitStack() as closing:
        data = closing.enter_context(host_data(disks, place.name, journal, [1, 2]))
        for tile, own in data.items():
            (own / f"of {tile}").touch()
        with ExitStack() as inner:
            made = {tile: root_with_data(root, place / f"root-{tile}", data[tile]) for tile in data}
            views = {tile: inner.enter_context(view) for tile, view in made.items()}
            said: dict[str, Any] = {"seen": {tile: names(view / "data") for tile, view in views.items()}}
            for tile, view in views.items():
                (view / f"data/made {tile}").touch()
            if end == "hang":
                sys.stdout.write("\n")
                sys.stdout.flush()
                time.sleep(60)
            (views[1] / WORKLOADS_FOLDER.lstrip("/") / "report").touch()
            (views[2] / "run/server").write_text("shared")
            said |= outside(root, data, views)
        closing.close()
        said |= {"left": names(disks), "mounts": [str(one) for tile in views for one in mounts_below(views[tile])]}
    sys.stdout.write(json.dumps(said) + "\n")


def outside(root: Path, data: dict[int, Path], views: dict[int, Path]) -> dict[str, object]:
    """What the views' writing has come to."""
    seen = os.statvfs(views[1] / "data").f_flag
    return {
        "written": {tile: names(own) for tile, own in data.items()},
        "same disk": (views[1] / "data").stat().st_dev == data[1].parent.stat().st_dev,
        "root": names(root / "data"),
        "root writable": not os.statvfs(views[1]).f_flag & os.ST_RDONLY,
        "flags": [name for name, flag in (("nodev", os.ST_NODEV), ("nosuid", os.ST_NOSUID)) if seen & flag],
        "reports": {tile: names(view / WORKLOADS_FOLDER.lstrip("/")) for tile, view in views.items()},
        "run": (root / "run/server").read_text(),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
