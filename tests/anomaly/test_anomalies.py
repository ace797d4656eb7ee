"""Every call of a run is spoilt once, in the manner of SQLite's anomaly tests.

The lab's own runner, cells, guests, snapshots, recorder, control socket, store, journal, launcher and sweep run over a
hypervisor and guests in memory. The nth call of each kind fails, finds the disk full, hangs, or is stopped at, for
n = 1, 2, 3 and so on until a whole run passes untouched; after each run `verdicts` is asked. `make anomalies` does all
of them, which takes its time; without it a choice that is spread over the run does. One of them alone, as a failure
prints it::

    VMLAB_ANOMALIES=cold:store.event:17:fail make anomalies
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Literal, get_args

import pytest

from tests.anomaly.injector import AWAITED, NEED_ROOM, Fault, Mode
from tests.anomaly.lab import AnomalousLab, Seen
from tests.anomaly.verdicts import problems

Start = Literal["cold", "frozen"]

_WISH = os.environ.get("VMLAB_ANOMALIES", "some")
_ONE = _WISH.split(":") if ":" in _WISH else None
_MOST_TOLD = 10
_CHOICE = (("frozen", "fail"), ("cold", "stop"))
"""What `make test` does."""


CASES = [
    pytest.param(start, mode, marks=[] if (start, mode) in _CHOICE else pytest.mark.nightly)
    for start in get_args(Start)
    for mode in get_args(Mode)
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where that is to be had: each run calls fsync a hundred times."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="anomaly-", dir=place) as name:
        yield Path(name)


def nth_calls(point: str, mode: Mode, calls: int) -> Iterable[int]:
    """Which calls of a point are spoilt; `calls` is how many an untouched run makes."""
    if _WISH == "all":
        return count(1)
    # A blocking call that hangs does so for a moment, wherever it stands.
    some = 1 if mode == "hang" and not point.startswith(AWAITED) else min(calls, 1 + calls.bit_length() // 2)
    return sorted({1 + round(k * (calls - 1) / max(1, some - 1)) for k in range(some)})


def points(untouched: Seen, mode: Mode) -> list[str]:
    """The kinds of calls that a run makes, and to which `mode` can happen."""
    return sorted(point for point in untouched.counts if mode != "full" or point in NEED_ROOM)


def told(start: Start, seen: Seen, found: list[str]) -> str:
    """What is wrong after one fault, and how it is tried again."""
    where = f" ({seen.where})" if seen.where else ""
    return f"VMLAB_ANOMALIES={start}:{seen.fault} make anomalies{where}\n    " + "\n    ".join(found)


@pytest.mark.timeout(4 * 3600 if _WISH == "all" else 1800)
@pytest.mark.parametrize(("start", "mode"), CASES)
def test_whatever_call_of_a_run_is_spoilt_the_run_ends_as_it_should_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, start: Start, mode: Mode
) -> None:
    if _ONE is not None and (_ONE[0] != start or _ONE[3] != mode):
        pytest.skip("another one is wished for")
    lab = AnomalousLab(folder, monkeypatch, cold=start == "cold")
    untouched = lab.run()
    assert problems(untouched, untouched) == []
    wrong: list[str] = []
    for point in points(untouched, mode) if _ONE is None else [_ONE[1]]:
        for n in nth_calls(point, mode, untouched.counts[point]) if _ONE is None else [int(_ONE[2])]:
            seen = lab.run(Fault(point, n, mode))
            found = problems(seen, untouched)
            if found:
                wrong.append(told(start, seen, found))
            if not seen.fired:
                break
    assert not wrong, f"{len(wrong)} anomalies:\n" + "\n".join(wrong[:_MOST_TOLD])
