"""The one module that writes settings of the host's kernel: a fixed list of files, named by their path below /sys."""

from __future__ import annotations

import os
import re
from pathlib import Path

KSM = "kernel/mm/ksm"
THP = "kernel/mm/transparent_hugepage/enabled"

_FIXED = frozenset({THP, *(f"{KSM}/{name}" for name in ("run", "pages_to_scan", "sleep_millisecs", "advisor_mode"))})
_READ_AHEAD = re.compile(r"block/[A-Za-z0-9][A-Za-z0-9!_.-]*/queue/read_ahead_kb", re.ASCII)


def read_ahead_of(disk: str) -> str:
    """The name of a whole disk's read-ahead, in KiB; `disk` is the kernel's name, such as ``sda``."""
    return f"block/{disk}/queue/read_ahead_kb"


def is_known(name: str) -> bool:
    """Whether the lab may write the file of this name."""
    return name in _FIXED or _READ_AHEAD.fullmatch(name) is not None


def chosen_word(text: str) -> str:
    """The chosen word of a list such as ``always [madvise] never``; any other text as it is."""
    return text.split("[", 1)[1].split("]", 1)[0] if "[" in text else text


def read_setting(sys: Path, name: str) -> str:
    """The value of a setting, without the other choices that the file lists; `sys` is where /sys is. Raises OSError."""
    return chosen_word((sys / name).read_text().strip())


def write_setting(sys: Path, name: str, value: str) -> None:
    """Change a setting. Raises ValueError for a file that the lab may not write, OSError where it is refused."""
    if not is_known(name):
        raise ValueError(f"{name} is no setting of the host")
    # The kernel takes the value from a single write. A link in place of the file is not followed.
    descriptor = os.open(sys / name, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
