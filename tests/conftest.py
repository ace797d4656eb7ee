"""What holds for all tests."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def _utc() -> None:
    """Times of day are the same wherever tests run."""
    os.environ["TZ"] = "UTC"
    time.tzset()


@pytest.fixture(autouse=True)
def _a_host_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's runs and those of this host do not see each other, but where the real program is run."""
    monkeypatch.setattr("vmlab.lab.measuring.RUN_FOLDERS", (tmp_path,))


@pytest.fixture(autouse=True)
def _a_state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds a user's runs, or leaves its own among them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def _no_precedence_for_the_tests_themselves() -> Iterator[None]:
    """A test that leaves its thread at real-time priority would hide from all later ones what is slow."""
    before = os.sched_getscheduler(0)
    yield
    if os.sched_getscheduler(0) != before:
        os.sched_setscheduler(0, before, os.sched_getparam(0) if before == os.SCHED_RR else os.sched_param(0))
        pytest.fail("the test left its thread at another priority")
