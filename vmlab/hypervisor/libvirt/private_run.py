"""A /run of the lab's own: libvirt, embedded or not, keeps a token and its list of host devices in the host's /run.

A lab would make ``/run/libvirt`` on a host that has none, and share it with the libvirtd of a host that has one. So the
runner sees an empty /run that contains only the folder of runtime folders.
"""

from __future__ import annotations

import os
from pathlib import Path

from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.system import kernel

_RUN = Path("/run")


def provide_run(kept: Path) -> None:
    """Cover the host's /run in this mount namespace; the folder `kept` stays where it is. Raises OSError.

    Raises HypervisorUnavailable outside a private mount namespace.
    """
    require_isolation()
    place = kept.resolve()
    held = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        kernel.mount("tmpfs", str(_RUN), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755")
        if place.is_relative_to(_RUN):
            place.mkdir(parents=True)
            kernel.mount(f"/proc/self/fd/{held}", str(place), None, kernel.MS_BIND)
    finally:
        os.close(held)
