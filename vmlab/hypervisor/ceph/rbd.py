"""Images in a pool of a Ceph cluster: whether the pool can be had, how a lab's own image is made and removed, and how a
QEMU reaches it from the lab's network, which has no way out.

Ceph's own program `rbd` does it, and QEMU's driver is asked through qemu-img. Both read the cluster's configuration,
which names its monitors and the key of client.admin. A library would wait for minutes for a cluster that is gone, and
nobody could end that; a program is killed.

An image of a lab is called ``vmlab.RUN.GUEST``. Nothing else in a pool is looked at or removed.

libvirt starts QEMU in the lab's network namespace, where it made the guest's tap. The tap is handed over as a
descriptor, so that QEMU itself may be anywhere: a script in QEMU's place moves itself into the host's network, gives up
all capabilities, and becomes QEMU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from vmlab.hypervisor.domain_spec import PoolImage
from vmlab.hypervisor.isolation.namespace import host_pids, host_proc, require_isolation
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.system import kernel
from vmlab.system.packages import installing

ANSWER_SECONDS = 10.0
"""How long a cluster may take to answer."""
REMOVE_SECONDS = 120.0
"""How long the removal of one image may take; Ceph removes what was written object by object."""
_WATCHED_SECONDS = 45.0
"""Ceph takes a client that was killed for alive for 30 s, and removes no image that one has open."""
_AGAIN_SECONDS = 1.0
_EXISTS = 17
_BUSY = 16
_GONE = 2
_PACKAGES = ("ceph-common", "qemu-block-extra")
_NAME = re.compile(r"rbd:([^/]+)/([^/]+)")


def conf_file() -> Path:
    """The cluster's configuration: what the environment's CEPH_CONF names, or else Debian's place."""
    return Path(os.environ.get("CEPH_CONF", "/etc/ceph/ceph.conf"))


def image_of(pool: str, lab: str, guest: str) -> PoolImage:
    """The image of a guest of a lab."""
    return PoolImage(pool, f"{_mark_of(lab)}{guest}", conf_file())


def _mark_of(lab: str) -> str:
    return f"vmlab.{lab}."


def named(words: str, lab: str) -> PoolImage | None:
    """The image that `words` of a journal name, if it is one of `lab`'s own."""
    found = _NAME.fullmatch(words)
    return PoolImage(found[1], found[2], conf_file()) if found and found[2].startswith(_mark_of(lab)) else None


def require_pool(pool: str, seconds: float = ANSWER_SECONDS) -> None:
    """Raise RefusedError unless QEMU can open images in `pool`, and an image can be made there; blocks.

    It changes nothing in the pool.
    """
    what = f"a data disk in Ceph's pool {pool}"
    if shutil.which("rbd") is None:
        raise RefusedError(f"{what} needs Ceph's program rbd, which is not installed", remedy=installing(*_PACKAGES))
    conf = conf_file()
    if not conf.is_file():
        raise RefusedError(
            f"{what} needs the configuration of the cluster, and there is no {conf}",
            remedy="put the cluster's ceph.conf and the keyring of client.admin there, or set CEPH_CONF",
        )
    image = PoolImage(pool, "vmlab", conf)
    try:
        said = _run(["qemu-img", "info", "--image-opts", _options(image)], seconds)
    except subprocess.TimeoutExpired as late:
        raise RefusedError(
            f"{what}: the cluster of {conf} does not answer within {seconds:g} s", remedy="ceph -s"
        ) from late
    last = said.stderr.strip().splitlines()[-1:] or [""]
    # The image is not there: QEMU looked for it, so it reaches the pool.
    if said.returncode == 0 or "error reading header" in last[0]:
        return
    if "Unknown driver" in last[0]:
        raise RefusedError(f"{what} needs QEMU's driver for it, which is not installed", remedy=installing(*_PACKAGES))
    if "error opening pool" in last[0]:
        raise RefusedError(f"the cluster of {conf} has no pool {pool}", remedy="name another with backing: rbd:POOL")
    why = last[0].partition(f"{_options(image)}': ")[2] or last[0] or f"qemu-img ended with code {said.returncode}"
    raise RefusedError(f"{what}: {why}", remedy="ceph -s")


def _options(image: PoolImage) -> str:
    conf = str(image.conf).replace(",", ",,")
    return f"driver=rbd,pool={image.pool},image={image.image},conf={conf}"


def create(image: PoolImage, size: int) -> None:
    """Make a thin image of `size` bytes; blocks. Raises HypervisorError, FileExistsError where the name is taken."""
    made = _rbd(image, ["create", "--size", f"{size}B"], ANSWER_SECONDS)
    if made.returncode == _EXISTS:
        raise FileExistsError(_EXISTS, "there is an image of that name already", str(image))
    if made.returncode:
        raise HypervisorError(f"cannot make {image}: {_last_word(made)}")


def remove(image: PoolImage) -> bool:
    """Remove an image; False where there is none; blocks. Raises HypervisorError where it stays."""
    end = time.monotonic() + _WATCHED_SECONDS
    while True:
        gone = _rbd(image, ["rm", "--no-progress"], REMOVE_SECONDS)
        if gone.returncode in (0, _GONE):
            return gone.returncode == 0
        if gone.returncode != _BUSY or time.monotonic() > end:
            raise HypervisorError(f"cannot remove {image}: {_last_word(gone)}")
        time.sleep(_AGAIN_SECONDS)


def _rbd(image: PoolImage, words: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    verb, *others = words
    argv = ["rbd", "--conf", str(image.conf), verb, *others, f"{image.pool}/{image.image}"]
    try:
        return _run(argv, seconds)
    except FileNotFoundError as error:
        raise HypervisorError(f"{image}: {error.filename} is not installed") from error
    except subprocess.TimeoutExpired as late:
        raise HypervisorError(f"rbd {verb} {image} took longer than {seconds:g} s") from late


def _run(argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*into_host_network(), *argv], capture_output=True, text=True, timeout=seconds, check=False, errors="replace"
    )


def _last_word(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.startswith("rbd: ")] or done.stderr.splitlines()
    return lines[-1].removeprefix("rbd: ") if lines else f"it ended with code {done.returncode}"


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
