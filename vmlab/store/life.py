"""Whether a run lives: its processes hold a lock together, which the kernel frees when the last of them is gone."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

LOCK = "lock"
PROCESSES = "runner.json"


def is_alive(folder: Path) -> bool:
    """Whether any process of the run in `folder` still holds its lock."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def process_ids(folder: Path) -> dict[str, int]:
    """Process ids of the run as the host sees them, such as ``runner_pid``; empty where none were written down.

    The ids are valid only while the run lives.
    """
    try:
        noted = json.loads((folder / PROCESSES).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {name: value for name, value in noted.items() if isinstance(value, int)}
