"""One check of the host: ``python3 -m tests.host.inside NAME``. The last line of a check that failed says why."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable

from tests.host.inside import (
    beside,
    copied_guests,
    gentle,
    kernel_settings,
    kills,
    kvm_claims,
    own_guests,
    surroundings,
    traced_guests,
    volumes,
)
from tests.host.inside.lab import Failed, tell

_CHECKS: dict[str, Callable[[], None]] = {
    "prepare": surroundings.prepare,
    "doctor": gentle.doctor,
    "cold": gentle.cold,
    "frozen": gentle.frozen,
    "shares": gentle.shares,
    "volumes": volumes.tried,
    "settings": kernel_settings.tried,
    "tile": gentle.tile,
    "console": gentle.console,
    "taken-away": gentle.taken_away,
    "selftest": gentle.selftest,
    "experiments": kvm_claims.answered,
    "own-guests": beside.watch,
    "copied-guests": copied_guests.compared,
    "traced-guests": traced_guests.compared,
    "beside-embedded": beside.lab(beside.EMBEDDED),
    "beside-system": beside.lab(beside.SYSTEM),
    "contract-system": beside.contract,
    "own-guests-end": own_guests.end,
    "untouched": gentle.untouched,
    **{f"kill-{victim}": kills.of(victim) for victim in kills.VICTIMS},
}


def main() -> int:
    """Run the check that the command line names."""
    try:
        _CHECKS[sys.argv[1]]()
    except Failed as failure:
        tell(str(failure))
        return 1
    except (OSError, ValueError, KeyError, LookupError, StopIteration, subprocess.SubprocessError) as error:
        tell(traceback.format_exc())
        tell(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    # What the program says on standard error belongs between the lines of the check.
    sys.stderr.flush()
    sys.exit(main())
