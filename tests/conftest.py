"""What holds for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _a_host_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's runs and those of this host do not see each other, but where the real program is run."""
    monkeypatch.setattr("vmlab.lab.measuring.RUN_FOLDERS", (tmp_path,))


@pytest.fixture(autouse=True)
def _a_state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds a user's runs, or leaves its own among them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
