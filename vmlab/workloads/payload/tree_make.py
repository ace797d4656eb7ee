"""Runs inside a guest: makes a tree of many small files, the same for the same seed, and its manifest.

One JSON argument: ``folder`` (is made anew), ``manifest`` (path), ``files``, ``bytes`` (of all files together),
``seed`` (text). Prints ``{"files": N, "bytes": N, "digest": HEX}``; the digest is over the manifest's lines in
sorted order, as in ``tree_digest.py``. A line of the manifest is path, size and SHA-256, apart by tabs.
"""

import hashlib
import itertools
import json
import random
import shutil
import sys
from pathlib import Path

FILES_A_FOLDER = 250


def sizes(generator: random.Random, files: int, total: int) -> list[int]:
    """Sizes between half the mean and one and a half, which add up exactly to `total`."""
    weights = [generator.uniform(0.5, 1.5) for _ in range(files)]
    edges, passed, whole = [0], 0.0, sum(weights)
    for weight in weights:
        passed += weight
        edges.append(round(total * passed / whole))
    edges[-1] = total
    return [after - before for before, after in itertools.pairwise(edges)]


def make(folder: Path, files: int, total: int, seed: str) -> list[str]:
    """Write the files; the lines of the manifest."""
    generator = random.Random(seed)
    lines = []
    for number, size in enumerate(sizes(generator, files, total)):
        relative = f"d{number // FILES_A_FOLDER:04d}/f{number:06d}.bin"
        if number % FILES_A_FOLDER == 0:
            (folder / relative).parent.mkdir(parents=True)
        content = generator.randbytes(size)
        (folder / relative).write_bytes(content)
        lines.append(f"{relative}\t{size}\t{hashlib.sha256(content).hexdigest()}")
    return lines


def main() -> None:
    options = json.loads(sys.argv[1])
    folder = Path(options["folder"])
    shutil.rmtree(folder, ignore_errors=True)
    lines = sorted(make(folder, options["files"], options["bytes"], options["seed"]))
    text = "".join(line + "\n" for line in lines)
    Path(options["manifest"]).write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    sys.stdout.write(json.dumps({"files": options["files"], "bytes": options["bytes"], "digest": digest}) + "\n")


if __name__ == "__main__":
    main()
