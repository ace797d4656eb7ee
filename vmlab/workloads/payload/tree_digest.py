"""Runs inside a guest: prints what a folder really contains, read from this guest's own disk.

One JSON argument: ``folder`` and ``listing`` (path of the file to write). Everything is synced and the page cache
dropped first, so that what is read was on the disk. Prints ``{"files": N, "bytes": N, "digest": HEX}`` as
``tree_make.py`` does; the listing has the form of its manifest.
"""

import hashlib
import json
import os
import sys
from pathlib import Path


def forget_cache() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def list_folder(folder: Path) -> tuple[list[str], int]:
    """Sorted lines of path, size and SHA-256, and the sum of sizes."""
    lines, total = [], 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            content = path.read_bytes()
            total += len(content)
            lines.append(f"{path.relative_to(folder)}\t{len(content)}\t{hashlib.sha256(content).hexdigest()}")
    return sorted(lines), total


def main() -> None:
    options = json.loads(sys.argv[1])
    forget_cache()
    lines, total = list_folder(Path(options["folder"]))
    text = "".join(line + "\n" for line in lines)
    Path(options["listing"]).write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    sys.stdout.write(json.dumps({"files": len(lines), "bytes": total, "digest": digest}) + "\n")


if __name__ == "__main__":
    main()
