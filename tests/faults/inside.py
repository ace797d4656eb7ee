"""One row, inside namespaces of its own: ``python -m tests.faults.inside NAME FOLDER SNAPSHOTS``.

Prints one line of JSON. As it is the first process of its PID namespace, all of the row ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from tests.faults.row import all_rows
from tests.faults.world import CHECKOUT, World
from vmlab.system import kernel

PACKAGES = sysconfig.get_path("purelib")
MISDEED = CHECKOUT / "tests/faults/kinds"
"""A package with a workload of this matrix alone."""


def main(name: str, folder: Path, snapshots: Path) -> None:
    """Try the row called `name`."""
    assert os.getpid() == 1, "a row kills and mounts: it is tried in namespaces of its own alone"
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    kernel.mount("overlay", PACKAGES, "overlay", kernel.MS_RDONLY, f"lowerdir={MISDEED}:{PACKAGES}")
    row = all_rows()[name]
    world = World(folder, snapshots)
    said: dict[str, Any] = {"happened": "", "problems": []}
    try:
        said["happened"] = row.act(world)
    except (AssertionError, TimeoutError) as error:
        said["problems"].append(str(error) or repr(error))
        said["happened"] = "; ".join(str(error).split("\n")) or repr(error)
    struck, over = world.struck_at, world.over_at or time.monotonic()
    said["seconds"] = None if struck is None else round(over - struck, 1)
    if struck is not None and over - struck > row.deadline:
        said["problems"].append(f"it took {over - struck:.0f} s, {row.deadline:.0f} s are allowed")
    said["problems"] += world.check()
    world.close()
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
