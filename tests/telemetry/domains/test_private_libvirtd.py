"""The reader against a real libvirtd with a real QEMU, in namespaces of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.inside.libvirt_calls import READING


@pytest.mark.guests
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("libvirtd") is None, reason="needs root and libvirtd")
def test_a_real_libvirt_is_read_and_nothing_else(tmp_path: Path) -> None:
    inside = ["bash", "-c", f"{sys.executable} -m tests.telemetry.domains.private_libvirtd {tmp_path} & wait $!"]
    alone = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run([*alone, *inside], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout.splitlines()[-1])
    (domain,) = told["domains"]
    assert (domain["name"], domain["source"], domain["vcpus"], domain["accelerator"]) == ("own", "libvirt", 1, "tcg")
    assert [(disk["target"], disk["cache"], disk["o_direct"]) for disk in domain["disks"]] == [
        ("vda", "none", True),
        ("vdb", "writeback", False),
    ]
    assert told["figures"]["domain_memory_resident_bytes[own]"] > 2**20
    assert told["figures"]["domain_disk_reads_per_second[own/vda]"] == 0
    assert set(told["called"]) <= {
        "registerErrorHandler",
        "openReadOnly",
        "getAllDomainStats",
        "name",
        "UUIDString",
        "XMLDesc",
    }
    # The daemon's own account of what it was asked for since the domain was started.
    assert "virConnectGetAllDomainStats" in told["served"]
    assert set(told["served"]) <= READING
