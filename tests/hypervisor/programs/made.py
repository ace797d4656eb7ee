"""The hypervisor that a program of this folder is to try: embedded, or the host's own libvirt."""

from __future__ import annotations

import os
from pathlib import Path

from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.hosts_hypervisor import HostsHypervisor

ON_HOST = "VMLAB_TEST_ON_HOST"
"""In the environment: the programs are to use ``qemu:///system``."""
WITH_KVM = "VMLAB_TEST_WITH_KVM"
"""In the environment: guests that end in their firmware run under KVM."""


def on_host() -> bool:
    """Whether it is the host's own."""
    return ON_HOST in os.environ


def made(runtime: Path, disks: Path, kernel: Path | None = None) -> EmbeddedHypervisor | HostsHypervisor:
    """The hypervisor of a lab called ``test``."""
    if on_host():
        return HostsHypervisor(disks, "test", kernel=kernel)
    return EmbeddedHypervisor(runtime, disks, "test", kernel=kernel)
