"""A user's patterns in what his command printed, within a deadline.

Python's expressions backtrack: ``(a+)+$`` takes for ever over forty letters. Neither a thread nor a loop of events can
end that, so a process of its own searches, `pattern_process`. `figures` of a kind are made in the runner, by `reparse`
and by programs that use the API.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vmlab.model.errors import WorkloadError
from vmlab.model.quantities import format_bytes

SECONDS = 30
"""For all patterns of one workload over all of its output; usual ones take less than one for 4 MiB."""
_BEHIND = 5
"""Seconds of CPU time behind that, after which a search ends that nobody could end."""
_PROGRAM = Path(__file__).with_name("pattern_process.py")


class Sought(NamedTuple):
    """A pattern, and after how many matches in one text its search may end; None for all of them."""

    pattern: str
    most: int | None = None


class Searched(NamedTuple):
    """How often a pattern matches in a text, and the first group of the first match, None where it has none."""

    times: int
    group: str | None


def search(every: Sequence[Sought], texts: Sequence[str]) -> list[list[Searched]]:
    """For each pattern what is found in each of the texts.

    Raises WorkloadError, with the pattern, where that takes longer than `SECONDS`, and where it cannot be done.
    """
    # Imported late: who reads records loads the kinds, and searches nothing.
    import subprocess

    if not every or not texts:
        return [[] for _ in every]
    asked = json.dumps({"texts": texts, "patterns": every, "seconds": SECONDS + _BEHIND}).encode()
    argv = [sys.executable, "-I", "-S", str(_PROGRAM)]
    try:
        done = subprocess.run(argv, input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS)
        printed, why = done.stdout, f"ended with {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired as error:
        printed, why = error.stdout or b"", f"took longer than {SECONDS} s, and was ended; a simpler pattern is needed"
    except OSError as error:
        printed, why = b"", f"could not be started: {error.strerror or error}"
    if why:
        pattern = every[min(printed.count(b"\n"), len(every) - 1)].pattern
        size = format_bytes(sum(map(len, texts)))
        raise WorkloadError(f"the search for {shown(pattern)} in {size} of output {why}")
    return [[Searched(*one) for one in json.loads(answer)] for answer in printed.splitlines()]


def shown(pattern: str) -> str:
    """A pattern in a message."""
    return f"'{pattern if len(pattern) <= 60 else f'{pattern[:59]}…'}'"
