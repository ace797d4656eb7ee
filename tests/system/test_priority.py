"""Tests without guests leave the CPUs to those with guests, whichever sessions their processes are in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.priority import LAST_NICE, stay_nice

_OWN = Path("/proc/self/autogroup")
pytestmark = pytest.mark.skipif(not _OWN.exists(), reason="this kernel shares the CPUs between processes alone")


def _nice_of_a_session(nice: int) -> int:
    """That of a session of its own, begun by a process as nice as this one and by `nice` more."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setsid()
            os.nice(nice)
            stay_nice()
            os.write(writes, _OWN.read_bytes().split()[-1])
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as said:
        os.waitpid(child, 0)
        return int(said.read())


def test_a_session_of_its_own_is_as_nice_as_what_began_it() -> None:
    assert _nice_of_a_session(3) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)


@pytest.mark.skipif(os.geteuid() != 0 or "PYTEST_XDIST_WORKER" not in os.environ, reason="no worker that is root")
def test_a_worker_leaves_the_cpus_to_guests() -> None:
    assert _OWN.read_text().split()[-1] == str(LAST_NICE)
