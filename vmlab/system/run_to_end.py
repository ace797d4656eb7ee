"""Programs of the host that are run to their end, within a deadline."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence


def run_to_end(
    argv: Sequence[str], seconds: float, *, missing: Exception, late: Exception, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What the program printed, and its exit status.

    Raises `missing` where it is not installed, and `late` where it takes longer than so many seconds, which ends it.
    """
    try:
        return subprocess.run(
            argv, env=env, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except FileNotFoundError as error:
        raise missing from error
    except subprocess.TimeoutExpired as error:
        raise late from error
