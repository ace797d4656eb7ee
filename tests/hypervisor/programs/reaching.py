"""In which network namespace what stands for QEMU runs, and with which capabilities, when it is to reach the host's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from vmlab.hypervisor.ceph.rbd import into_host_network, provide_emulator, require_host_network
from vmlab.hypervisor.isolation.namespace import network_namespace
from vmlab.hypervisor.libvirt.libvirt_root import provide_run
from vmlab.model.errors import HypervisorError

_LOOK = "stat -L -c %i /proc/self/ns/net; grep ^Cap /proc/self/status"


def look(*argv: str) -> dict[str, Any]:
    network, *capabilities = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    return {"network": int(network), "capabilities": [line.split()[1] for line in capabilities]}


def main(runtime: str) -> None:
    """Print one document."""
    provide_run(Path(runtime))
    shell = provide_emulator("/bin/sh")
    try:
        require_host_network(os.getpid(), "vm")
        refused = ""
    except HypervisorError as error:
        refused = str(error)
    said = {
        "lab": network_namespace(),
        "qemu": look(shell, "-c", _LOOK),
        "asked": look(shell, "-c", _LOOK, "none,accel=tcg"),
        "rbd": look(*into_host_network(), "sh", "-c", _LOOK)["network"],
        "refused": refused,
    }
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
