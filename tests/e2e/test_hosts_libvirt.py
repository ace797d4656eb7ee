"""Real runs on a libvirtd that others use: measured, proven, and gone, whoever of the lab is killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
ALONE = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.guests,
    pytest.mark.usefixtures("image"),
    pytest.mark.xdist_group("runs"),
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("libvirtd") is None, reason="needs libvirtd, of Debian's libvirt-daemon"),
    pytest.mark.skipif(shutil.which("iptables") is None, reason="libvirt needs iptables for an isolated network"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path on a disk."""
    made = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def on_libvirtd(folder: Path, victims: str, *words: str) -> list[dict[str, Any]]:
    program = f"{sys.executable} -m tests.e2e.programs.on_libvirtd {folder} {victims} {' '.join(words)}"
    done = subprocess.run(
        [*ALONE, "bash", "-c", f"{program} & wait $!"],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_untouched(document: dict[str, Any]) -> None:
    assert not any(document["new"].values()), document["new"]
    assert not any(document["gone"].values()), document["gone"]
    assert document["disks"] == [] and document["again"] == []


def test_a_tile_is_measured_in_both_cache_modes(folder: Path) -> None:
    (document,) = on_libvirtd(folder, "nobody", "tile", "--size", "smoke", "--cache", "none,writeback")
    assert document["status"] == 0, document["said"]
    shown = document["show"]
    host = shown["run"]["host"]
    assert host["hypervisor"] == "qemu:///system"
    assert [one["name"] for one in host["neighbours"]] == ["test", "test-2-web-1", "test-copied", "test-decoy"]
    for cell in shown["cells"]:
        assert cell["outcome"] == "passed", cell["reasons"]
        assert cell["provision"]["how"] == "restored"
        assert len(cell["cache_proof"]) >= 8 and all(proof["agrees"] for proof in cell["cache_proof"])
    assert document["cleaned"] == []
    require_untouched(document)


def test_whoever_is_killed_nothing_is_left(folder: Path) -> None:
    for document in on_libvirtd(folder, "runner,init,launcher", "tile", "--size", "smoke", "--cache", "none"):
        assert document["status"] != 0
        assert len(document["domains"]) == 4
        require_untouched(document)
