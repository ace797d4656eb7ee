"""Fleets without guests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.fleet.local_hosts import LocalFleet


@pytest.fixture
async def fleet(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalFleet]:
    """Three hosts; what a test leaves of their runs is killed. A socket's path must be short."""
    with TemporaryDirectory(prefix="vf-", dir="/var/tmp") as folder:
        monkeypatch.setenv("VMLAB_RUNTIME_DIR", f"{folder}/run")
        found = LocalFleet.at(Path(folder))
        yield found
        for host in found.hosts.values():
            await host.hang_up()
            host.end()
