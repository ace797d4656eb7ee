"""Mounts an ext4 image for workloads on the host, and tells what is seen; ``hang`` waits inside to be killed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from vmlab.hypervisor.disks.host_files import mounted_root
from vmlab.hypervisor.journal import Journal


def writes(folder: Path, original: Path) -> bool:
    """Whether what is done below `folder` could reach `original`: the same folder, or one that can be written to."""
    if folder.stat().st_dev == original.stat().st_dev and folder.name == "dev":
        return True
    return not os.statvfs(folder).f_flag & os.ST_RDONLY


def main(disk: str, folder: str, end: str) -> None:
    """Print one line of JSON from within the mount; on ``end`` also what is left after it."""
    journal = Journal(Path(folder) / "journal.jsonl")
    with mounted_root(Path(disk), Path(folder), Path(folder).name, journal) as root:
        try:
            (root / "etc" / "new").touch()
            writable = True
        except OSError:
            writable = False
        (root / "tmp" / "new").write_text("fresh")
        loops = subprocess.run(["losetup", "-j", disk], capture_output=True, text=True, check=True).stdout
        said = {
            "writable": writable,
            "proc": (root / "proc/self").exists(),
            "loops": loops.count("\n"),
            "dev": sorted(path.name for path in (root / "dev").iterdir()),
            "null": (root / "dev/null").read_bytes() == b"" and len((root / "dev/zero").open("rb").read(4)) == 4,
            "host": sorted(name for name in ("dev", "proc", "sys") if writes(root / name, Path("/", name))),
        }
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        if end == "hang":
            time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
