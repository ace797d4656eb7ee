"""Runs inside a guest: makes the files that the test of copies reads.

One JSON argument: ``folder`` (is there), ``sizes`` (bytes of each file, by its name), ``seed`` (text). The content of
a file is SHAKE-128 of the seed, a blank and the file's name, as long as the file. Each is on the disk at the end.
"""

import hashlib
import json
import os
import sys
from pathlib import Path


def content(seed: str, name: str, size: int) -> bytes:
    """What a file holds."""
    return hashlib.shake_128(f"{seed} {name}".encode()).digest(size)


def main() -> None:
    options = json.loads(sys.argv[1])
    for name, size in options["sizes"].items():
        with (Path(options["folder"]) / name).open("wb") as file:
            file.write(content(options["seed"], name, size))
            file.flush()
            os.fsync(file.fileno())


if __name__ == "__main__":
    main()
