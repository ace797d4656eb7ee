"""Where something was measured, and of which commit."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from vmlab.system.kvm_device import processor_fields


def commit() -> str:
    """The checkout's commit, in short."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()


def processor() -> str:
    """What the processors of this machine are."""
    return processor_fields(Path("/proc/cpuinfo").read_text()).get("model name") or platform.machine()


def host() -> str:
    """How many there are, and what."""
    return f"{os.cpu_count()} x {processor()}"
