"""Where something was measured, and of which commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from vmlab.system.kvm_device import processor_fields


def commit() -> str:
    """The checkout's commit, in short."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()


def host() -> str:
    """The processors of this machine."""
    return f"{os.cpu_count()} x {processor_fields(Path('/proc/cpuinfo').read_text())['model name']}"
