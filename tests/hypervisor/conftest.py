"""Programs that run in namespaces of their own, as a lab does."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vmlab.hypervisor.contract import DomainSpec
from vmlab.model.run import CacheMode

CHECKOUT = Path(__file__).parents[2]

Start = Callable[..., subprocess.Popen[str]]


def spec(
    name: str = "web-1", cache: CacheMode = "none", *, guest: str = "web", shares: int | None = None
) -> DomainSpec:
    """A guest with everything said."""
    return DomainSpec(
        name=name,
        guest=guest,
        tile=1,
        vcpus=1,
        memory_bytes=512 * 2**20,
        disk_bytes=8 * 2**30,
        mac=f"52:54:00:00:00:{sum(name.encode()) % 256:02x}",
        cache=cache,
        queues=1,
        cpu_shares=shares,
    )


@pytest.fixture
def isolated() -> Start:
    """Start a program of `programs` under `run_isolated`; its launcher's process. Skips without root."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")

    def start(name: str, *arguments: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "tests.hypervisor.programs.isolated", name, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        return subprocess.Popen(
            argv, cwd=CHECKOUT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    return start
