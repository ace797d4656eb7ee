"""Sites with scripted shells, and what real tools printed."""

from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell
from vmlab.workloads.workload_steps import WorkloadContext


@pytest.fixture
def captured() -> Path:
    """Output of Debian 12's own sysbench 1.0.20 and ab 2.3."""
    return Path(__file__).parent / "captured"


@pytest.fixture
def source() -> FakeShell:
    return FakeShell("near", "198.18.0.11")


@pytest.fixture
def target() -> FakeShell:
    return FakeShell("far", "198.18.0.12")


@pytest.fixture
def context(source: FakeShell, target: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="load", tile=2, cell=3, seed=7, source=source, target=target)
