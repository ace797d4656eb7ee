"""Programs that run in namespaces of their own, as a lab does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.integrity.digests import FileDigests, describe
from vmlab.model.names import RAM
from vmlab.model.run import CacheMode
from vmlab.model.scenarios.guest import GuestResources

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Saved:
    """A frozen guest, with the digests that its RAM state has now."""

    folder: Path
    files: Mapping[str, FileDigests]

    @classmethod
    def now(cls, folder: Path) -> Saved:
        return cls(folder, {RAM: describe(folder / RAM)})


Start = Callable[..., subprocess.Popen[str]]


def spec(
    name: str = "web-1", cache: CacheMode = "none", *, guest: str = "web", shares: int | None = None, **others: Any
) -> DomainSpec:
    """A guest with everything said; `others` are more attributes."""
    return DomainSpec(
        name=name,
        guest=guest,
        tile=1,
        resources=GuestResources(vcpus=1, memory_bytes=512 * 2**20, cpu_shares=shares, cache=cache, **others),
        mac=f"52:54:00:00:00:{sum(name.encode()) % 256:02x}",
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


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A short runtime folder for a lab of this test, which makes it itself; removed in the end."""
    folder = Path(f"/run/vmlab-test-{os.getpid()}")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
