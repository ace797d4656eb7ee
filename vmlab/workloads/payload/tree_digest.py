"""Runs inside a guest: prints what a folder really contains, read from this guest's own disk.

One JSON argument: ``folder``, ``listing`` (path of the file to write) and ``made`` (path of a file that holds a JSON
object, or nothing). Everything is synced and the page cache dropped first, so that what is read was on the disk. Prints
``{"files": N, "bytes": N, "digest": HEX, "made": OBJECT}`` as ``tree_make.py`` does, with what the file ``made`` holds;
the listing has the form of its manifest. It does without pathlib, whose import would be a fifth of all that its
start takes.
"""

import hashlib
import json
import os
import sys


def forget_cache() -> None:
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as caches:
        caches.write("3\n")


def list_folder(folder: str) -> tuple[list[str], int]:
    """Sorted lines of path, size and SHA-256, and the sum of sizes."""
    lines, total = [], 0
    for parent, _, names in os.walk(folder):
        relative = parent[len(folder) :].lstrip("/")
        for name in names:
            with open(f"{parent}/{name}", "rb") as file:
                content = file.read()
            total += len(content)
            path = f"{relative}/{name}" if relative else name
            lines.append(f"{path}\t{len(content)}\t{hashlib.sha256(content).hexdigest()}")
    return sorted(lines), total


def read_made(path: str) -> object:
    """The JSON in a file; None without a path."""
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main() -> None:
    options = json.loads(sys.argv[1])
    forget_cache()
    lines, total = list_folder(options["folder"].rstrip("/"))
    text = "".join(line + "\n" for line in lines)
    with open(options["listing"], "w", encoding="utf-8") as listing:
        listing.write(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = {"files": len(lines), "bytes": total, "digest": digest, "made": read_made(options["made"])}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
