"""A QEMU that reaches the host's own network, as a disk in a Ceph pool needs it: the lab's network has no way out.

libvirt starts QEMU in the lab's network namespace, where it made the guest's tap. The tap is handed over as a
descriptor, so that QEMU itself may be anywhere: a script in QEMU's place moves itself into the host's network, gives up
all capabilities, and becomes QEMU.
"""

from __future__ import annotations

from pathlib import Path

from vmlab.hypervisor.isolation.namespace import host_pids, host_proc, require_isolation
from vmlab.model.errors import HypervisorError
from vmlab.system import kernel

_FOLDER = Path("/run/vmlab-host-network")
"""In the /run that the runner alone sees; always the same, as libvirt keeps what it knows of a QEMU by its path."""
_NAMESPACE = _FOLDER / "net"

# libvirt asks a QEMU for what it can do after it gave up all capabilities, without which nobody changes namespaces.
_SCRIPT = """\
#!/bin/sh
case " $* " in *" none,accel="*) exec {emulator} "$@" ;; esac
exec {into} setpriv --bounding-set=-all --inh-caps=-all -- {emulator} "$@"
"""


def provide_emulator(emulator: str) -> str:
    """Make a program that starts `emulator` in the host's network; its path. To be called when /run is the lab's own.

    Raises HypervisorUnavailable outside a lab, HypervisorError and OSError where it cannot be made.
    """
    require_isolation()
    pids = host_pids()
    if pids is None:
        raise HypervisorError("the pid of the launcher is not known, and so not the host's network")
    _FOLDER.mkdir(mode=0o700, exist_ok=True)
    _NAMESPACE.touch()
    kernel.mount(str(host_proc() / str(pids.launcher) / "ns/net"), str(_NAMESPACE), flags=kernel.MS_BIND)
    program = _FOLDER / Path(emulator).name
    program.write_text(_SCRIPT.format(emulator=emulator, into=" ".join(into_host_network())))
    program.chmod(0o700)
    return str(program)


def into_host_network() -> tuple[str, ...]:
    """What stands before a command that needs the host's network: nothing where this process is in it."""
    return ("nsenter", f"--net={_NAMESPACE}") if _NAMESPACE.exists() else ()


def require_host_network(pid: int, who: str) -> None:
    """Raise HypervisorError unless the QEMU with process `pid`, which reaches a pool for `who`, is in that network."""
    if Path(f"/proc/{pid}/ns/net").stat().st_ino != _NAMESPACE.stat().st_ino:
        raise HypervisorError(f"{who}: its QEMU does not reach the host's network, and so no Ceph cluster")
