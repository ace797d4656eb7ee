"""Guests of a libvirtd of its own, in namespaces, which a program is run beside: ``python -m … COUNT PROGRAM …``.

Each has one CPU, 64 MiB, an empty disk in cache mode none or writeback, and a balloon that libvirt asks each second.
No system boots: the firmware finds none and waits. As root, in ``unshare --mount --pid --net``, not as PID 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import libvirt

from tests.private_libvirtd import start_daemon

ALONE = ("unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child")
_QUIET = """log_filters = "3:*"
log_outputs = "3:file:{log}"
auth_unix_ro = "none"
auth_unix_rw = "none"
"""
"""As libvirt is by default: what it logs is no part of what reading costs."""
_GUEST = """<domain type='qemu'><name>guest-{number}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='{cache}'/>
<source file='{disk}'/><target dev='vda' bus='virtio'/></disk>
<memballoon model='virtio'><stats period='1'/></memballoon></devices></domain>"""
_SETTLED_SECONDS = 15.0
"""In which the firmware has looked for a system."""


def main() -> int:
    """The guests, then the program; its exit status."""
    count, *program = sys.argv[1:]
    # The disks of this folder take O_DIRECT, and libvirtd's own folders do not cover it.
    with tempfile.TemporaryDirectory(prefix="vmb-", dir="/var/tmp") as folder:
        start_daemon(Path(folder, "libvirtd.log"), daemon_conf=_QUIET)
        connection = libvirt.open("qemu:///system")
        for number in range(int(count)):
            disk = Path(folder, f"{number}.qcow2")
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "64M"], check=True)
            cache = ("none", "writeback")[number % 2]
            text = _GUEST.format(number=number, cache=cache, disk=disk)
            connection.createXML(text, libvirt.VIR_DOMAIN_START_AUTODESTROY)
        time.sleep(_SETTLED_SECONDS)
        status = subprocess.run(program, check=False).returncode
        connection.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
