"""The recorded host that the recorder's tests read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.telemetry.recorded import RecordedHost, recorded_host


@pytest.fixture
def host(tmp_path: Path) -> RecordedHost:
    """A fresh copy for each test."""
    return recorded_host(tmp_path)
