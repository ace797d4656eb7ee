"""What the host is made of: Debian's packages, a few files of configuration, and the program's Python dependencies."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PAYLOAD = Path(__file__).parent / "payload"
FORMAT = 1
"""Raised when the build changes in a way that the rest of the recipe does not show."""

VENV = "/opt/vmlab"
TESTS = (
    "tests/host/inside",
    "tests/checklist.py",
    "tests/experiments",
    "tests/private_libvirtd.py",
    *(f"tests/hypervisor/{name}" for name in ("conftest.py", "programs", "hosts_libvirt")),
)
"""What is copied to the host."""
DISK_BYTES = 24 * 2**30

_ITS_OWN = (
    "linux-image-amd64",
    "systemd-sysv",
    "udev",
    "dbus",
    "systemd-container",
    "openssh-server",
    "iproute2",
    "procps",
    # A libvirt that is in use: daemon, client, and what its default network takes.
    "libvirt-daemon-system",
    "libvirt-clients",
    "apparmor",
    "dnsmasq-base",
    "python3-venv",
    "tmux",
    # A volume group for data disks.
    "lvm2",
)
_FOR_RUNS = ("# The hypervisor", "# The guest image", "# File systems")
"""The headings in debian-packages.txt whose packages the program needs where it runs; others compile and test."""


def packages() -> list[str]:
    """The packages that are asked for."""
    found, wanted = list(_ITS_OWN), False
    for line in (CHECKOUT / "packaging/debian-packages.txt").read_text().splitlines():
        if line.startswith("#"):
            wanted = line.startswith(_FOR_RUNS)
        elif wanted and line not in found:
            found.append(line)
    return found


def dependencies() -> list[str]:
    """What the program needs from Python to run guests."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["lab"]]


def address(codename: str) -> str:
    """Twelve hexadecimal digits that stand for all of it."""
    payload = {str(file.relative_to(PAYLOAD)): file.read_text() for file in PAYLOAD.rglob("*") if file.is_file()}
    constraints = (CHECKOUT / "constraints.txt").read_text()
    whole = [FORMAT, codename, packages(), payload, dependencies(), constraints, VENV, DISK_BYTES]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:12]
