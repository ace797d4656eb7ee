"""A tiny root tree in the place of Debian's: stand-ins for mmdebstrap, for unit tests alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAKES_A_TREE = """
for tree; do case $tree in */tree) break;; esac; done
mkdir -p "$tree/boot" "$tree/var/lib/dpkg" "$tree/etc"
mkdir -p "$tree/usr/share/doc/hello/examples"
echo "see /usr/share/common-licenses/GPL-3." >"$tree/usr/share/doc/hello/copyright"
ln -s hello "$tree/usr/share/doc/hello-again"
echo kernel >"$tree/boot/vmlinuz"
echo initrd >"$tree/boot/initrd.img"
cat >"$tree/var/lib/dpkg/status" <<END
Package: hello
Status: install ok installed
Version: 2.10-3
Architecture: all
END
echo "I: extracting archives..."
echo "step: 30-database.sh"
"""


def put_stub(folder: Path, body: str, name: str = "mmdebstrap") -> None:
    """Write an executable shell script of that name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def path_with(folder: Path) -> str:
    """The search path with `folder` first."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
