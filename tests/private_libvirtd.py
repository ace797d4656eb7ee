"""A libvirtd of its own, in mount, PID and network namespaces that its caller is in; never on the host itself."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[1]
NEEDED = [
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
    pytest.mark.skipif(shutil.which("libvirtd") is None, reason="needs libvirtd, of Debian's libvirt-daemon"),
    pytest.mark.skipif(shutil.which("iptables") is None, reason="libvirt needs iptables for an isolated network"),
]
"""What a test of a lab on one needs."""
_ALONE = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
PLACES = ("/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/run")
LIKE_DEBIANS = """stdio_handler = "file"
security_driver = "none"
user = "libvirt-qemu"
group = "libvirt-qemu"
cgroup_controllers = []
"""
"""QEMU under a user of its own, files given to it, a /dev of its own, as after `apt install libvirt-daemon-system`."""
QEMU_CONF = """stdio_handler = "file"
security_driver = "none"
user = "root"
group = "root"
remember_owner = 0
namespaces = []
cgroup_controllers = []
"""
DAEMON_CONF = """log_filters = "1:libvirt 3:*"
log_outputs = "1:file:{log}"
auth_unix_ro = "none"
auth_unix_rw = "none"
"""


@pytest.fixture
def disk_folder() -> Iterator[Path]:
    """A short path on a disk, as O_DIRECT wants it, and not below a folder that `start_daemon` covers."""
    made = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def told_by(module: str, folder: Path, victims: str, *words: str, seconds: float) -> list[dict[str, Any]]:
    """What a program that starts one prints, a document for each of `victims`; it runs in namespaces of its own."""
    program = f"{sys.executable} -m {module} {folder} {victims} {' '.join(words)}"
    done = subprocess.run(
        [*_ALONE, "bash", "-c", f"{program} & wait $!"],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_untouched(document: dict[str, Any]) -> None:
    """Nothing of the lab is left, and nothing of anybody else has gone."""
    assert not any(document["new"].values()), document["new"]
    assert not any(document["gone"].values()), document["gone"]
    assert document["disks"] == []


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def hide_kvm() -> None:
    """Mount a /dev like the host's without its KVM device: where that opens and KVM does not work, libvirt queries QEMU
    again at every start, which takes minutes for four guests on a busy host.
    """
    made = Path("/run/dev")
    made.mkdir()
    mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(made))
    for node in Path("/dev").iterdir():
        copy, found = made / node.name, node.lstat()
        if node.name == "kvm":
            continue
        if stat.S_ISLNK(found.st_mode):
            copy.symlink_to(node.readlink())
        elif stat.S_ISDIR(found.st_mode):
            copy.mkdir()
            mount("--rbind", str(node), str(copy))
        else:
            os.mknod(copy, found.st_mode, found.st_rdev)
            copy.chmod(stat.S_IMODE(found.st_mode))
    mount("--rbind", str(made), "/dev")


def start_daemon(log: Path, conf: str = QEMU_CONF, daemon_conf: str = DAEMON_CONF) -> None:
    """Over folders that are this namespace's alone; `conf` is its qemu.conf, `daemon_conf` its libvirtd.conf."""
    mount("--make-rprivate", "/")
    for place in PLACES:
        Path(place).mkdir(parents=True, exist_ok=True)
        mount("-t", "tmpfs", "tmpfs", place)
    hide_kvm()
    for name, user in (("passwd", "libvirt-qemu:x:64055:64055::/:/bin/false\n"), ("group", "libvirt-qemu:x:64055:\n")):
        copy = Path("/run") / name
        copy.write_text(Path("/etc", name).read_text() + user + ("kvm:x:994:\n" if name == "group" else ""))
        mount("--bind", str(copy), f"/etc/{name}")
    Path("/etc/libvirt/qemu.conf").write_text(conf)
    Path("/etc/libvirt/libvirtd.conf").write_text(daemon_conf.format(log=log))
    # On another CPU it takes the host for a different one and queries QEMU again. Its QEMUs get all CPUs.
    one_cpu = ["taskset", "--cpu-list", "0"]
    subprocess.run([*one_cpu, "libvirtd", "-d", "--pid-file", "/run/libvirtd.pid"], check=True)
    end = time.monotonic() + 60
    while not Path("/run/libvirt/libvirt-sock-ro").exists() and time.monotonic() < end:
        time.sleep(0.1)


def show_own_links() -> None:
    """Have /sys show the links of this network namespace; to be called when `start_daemon` has made mounts private."""
    kept = Path("/run/cgroups-of-the-host")
    kept.mkdir()
    mount("--rbind", "/sys/fs/cgroup", str(kept))
    mount("-t", "sysfs", "sysfs", "/sys")
    mount("--rbind", str(kept), "/sys/fs/cgroup")
