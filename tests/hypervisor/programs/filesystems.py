"""What disks say on a file system without O_DIRECT, and on one that is full."""

import json
import sys
from pathlib import Path

from vmlab.hypervisor.disks.overlays import make_overlay, require_direct
from vmlab.model.errors import RefusedError
from vmlab.system import kernel
from vmlab.system.file_system import supports_direct


def refusal_of_direct(folder: Path) -> str:
    """The refusal of cache=none on ramfs."""
    kernel.mount("ramfs", str(folder), "ramfs")
    require_direct(folder, "writeback")
    assert not supports_direct(folder)
    try:
        require_direct(folder, "none")
    except RefusedError as error:
        return str(error)
    return ""


def refusal_of_full_disk(folder: Path, base: Path) -> str:
    """The refusal of an overlay on a tmpfs of one MiB."""
    kernel.mount("tmpfs", str(folder), "tmpfs", 0, "size=1m")
    try:
        make_overlay(base, folder / "guest.qcow2", 2**30)
    except RefusedError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place / "base.raw").write_bytes(bytes(2**16))
    for name in ("without", "full"):
        (place / name).mkdir()
    said = [refusal_of_direct(place / "without"), refusal_of_full_disk(place / "full", place / "base.raw")]
    sys.stdout.write(json.dumps(said))
