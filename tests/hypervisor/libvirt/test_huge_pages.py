"""A host with a hugetlbfs, as systemd mounts one: libvirt made a folder in it and left it there."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_lab_leaves_nothing_among_the_hosts_huge_pages(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    huge.mkdir()
    runtime = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    lab = f"{sys.executable} -m tests.hypervisor.programs.isolated opening {runtime} {tmp_path}"
    script = f"mount -t hugetlbfs none {huge} || exit 77; {lab} && ls -A {huge}"
    try:
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        shutil.rmtree(runtime)
    if done.returncode == 77:
        pytest.skip("this kernel has no hugetlbfs")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
