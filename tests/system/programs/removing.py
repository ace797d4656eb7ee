"""Mounts something below a tree of dummies, removes the tree, and tells what came of it; inside `unshare --mount`."""

import json
import sys
from pathlib import Path

from vmlab.system import kernel, removal


def main(tree: Path, what: str, seen_before: bool) -> None:
    """`what` is mounted from the folder ``outside`` beside the tree, which must survive."""
    outside = tree.parent / "outside"
    if what == "file":
        point = tree / "a" / "b" / "file"
        kernel.mount(str(outside / "precious"), str(point), None, kernel.MS_BIND)
    else:
        point = tree if what == "top" else tree / "a" / "b" / "c"
        if what == "tmpfs":
            kernel.mount("tmpfs", str(point), "tmpfs")
            (point / "inner").mkdir()
            (point / "precious").write_text("precious")
        else:
            # The same file system: a removal that compares device numbers would walk on.
            kernel.mount(str(outside), str(point), None, kernel.MS_BIND)
    if not seen_before:
        removal.mounts_below = lambda folder: []
    try:
        removal.remove_tree(tree)
        error = "none"
    except OSError as raised:
        error = type(raised).__name__
    content = point.read_text() if what == "file" else (point / "precious").read_text()
    sys.stdout.write(json.dumps({"error": error, "still_mounted": content == "precious"}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "1")
