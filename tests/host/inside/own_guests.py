"""Three guests of the host's own, started by its libvirtd under AppArmor: one reads, one writes, one is idle."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.host.inside.lab import command, require, tell, wait_until

_FOLDER = Path("/var/lib/libvirt/images/own")
_IMAGES = Path("/root/.cache/vmlab/images")
_DATA_BYTES = 64 * 2**20
_AT_WORK_BYTES = 4 * 2**20
"""From this much on, a guest has booted and is at work."""
_BOOT_SECONDS = 900.0
_ONE_COMMAND = (
    "vmlab.boot=normal systemd.unit=kernel-command-line.target"
    " systemd.run_success_action=none systemd.run_failure_action=none"
)
"""A guest that runs what `systemd.run` says and nothing else."""


@dataclass(frozen=True, slots=True)
class OwnGuest:
    """A guest that runs one command of Debian's."""

    name: str
    cache: str
    works: str

    def disk(self, target: str, kind: str, file: Path) -> str:
        """A disk's XML."""
        return (
            f"<disk type='file' device='disk'><driver name='qemu' type='{kind}' cache='{self.cache}'/>"
            f"<source file='{file}'/><target dev='{target}' bus='virtio'/></disk>"
        )

    def xml(self, command_line: str) -> str:
        """The whole domain."""
        return (
            f"<domain type='kvm'><name>{self.name}</name><memory unit='MiB'>256</memory><vcpu>1</vcpu>"
            "<os><type arch='x86_64' machine='q35'>hvm</type>"
            f"<kernel>{_FOLDER}/vmlinuz</kernel><initrd>{_FOLDER}/initrd.img</initrd>"
            f"<cmdline>{command_line} {_ONE_COMMAND} systemd.run=&quot;{self.works}&quot;</cmdline></os>"
            "<features><acpi/></features><devices>"
            f"{self.disk('vda', 'qcow2', _FOLDER / f'{self.name}.qcow2')}"
            f"{self.disk('vdb', 'raw', _FOLDER / f'{self.name}.raw')}"
            "<memballoon model='virtio'><stats period='5'/></memballoon></devices></domain>"
        )


_FIO = "/usr/bin/fio --name=load --filename=/dev/vdb --direct=1 --time_based --runtime=7200 --bs=64k"
READER = OwnGuest("reader", "writeback", f"{_FIO} --rw=randread")
# With its map of what it has written fio fills the last gaps of a small disk in sequence.
WRITER = OwnGuest("writer", "none", f"{_FIO} --rw=randwrite --norandommap --rate_iops=5")
IDLE = OwnGuest("idle", "none", "/usr/bin/sleep infinity")
OWN_GUESTS = (READER, WRITER, IDLE)


def start() -> None:
    """Have all of them running, at work and confined; those that run already stay."""
    if all(guest.name in command("virsh", "list", "--name").split() for guest in OWN_GUESTS):
        return
    (image,) = (file.parent for file in _IMAGES.glob("*/manifest.json"))
    _FOLDER.mkdir(mode=0o755, exist_ok=True)
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy(image / name, _FOLDER)
    # AppArmor lets a guest read what lies here, and nothing in root's folder.
    command("cp", "--sparse=always", str(image / "root.raw"), str(_FOLDER), timeout=600)
    words = json.loads((image / "manifest.json").read_text())["command_line"]
    for guest in OWN_GUESTS:
        over = str(_FOLDER / f"{guest.name}.qcow2")
        command("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(_FOLDER / "root.raw"), "-F", "raw", over)
        with (_FOLDER / f"{guest.name}.raw").open("wb") as data:
            for _ in range(_DATA_BYTES // 2**20):
                data.write(bytes(range(256)) * 4096)
        file = _FOLDER / f"{guest.name}.xml"
        file.write_text(guest.xml(words))
        command("virsh", "create", str(file), timeout=240)
        confined = process(guest).joinpath("attr/current").read_text()
        require("libvirt-" in confined and "enforce" in confined, f"AppArmor does not confine {guest.name}: {confined}")
    wait_until(lambda: _moved(READER) and _moved(WRITER), _BOOT_SECONDS, "reader and writer at work")
    tell("reader and writer are at work")


def end() -> None:
    """Pull their plugs."""
    for guest in OWN_GUESTS:
        command("virsh", "destroy", guest.name)
    shutil.rmtree(_FOLDER)


def _moved(guest: OwnGuest) -> bool:
    told = dict(re.findall(r"vdb (\w+) (\d+)", command("virsh", "domblkstat", guest.name, "vdb")))
    return int(told["rd_bytes"]) + int(told["wr_bytes"]) > _AT_WORK_BYTES


def process(guest: OwnGuest) -> Path:
    """Its QEMU's folder in /proc."""
    return Path("/proc", Path(f"/run/libvirt/qemu/{guest.name}.pid").read_text().strip())


def as_they_are() -> dict[str, str]:
    """What somebody else could have changed of them: definition, state, balloon, processes and disks' modes."""
    found = {}
    for guest in OWN_GUESTS:
        name = guest.name
        found[name] = "\n".join(
            (
                command("virsh", "dumpxml", name),
                command("virsh", "domstate", name, "--reason"),
                command("virsh", "schedinfo", name),
                str(process(guest)),
                *sorted(_flags(process(guest))),
            )
        )
    return found


def _flags(folder: Path) -> list[str]:
    """The files of the guest's disks as they are open, with their flags."""
    found = []
    for link in (folder / "fd").iterdir():
        if str(_FOLDER) in str(link.readlink()):
            (flags,) = re.findall(r"flags:\s+(\d+)", (folder / "fdinfo" / link.name).read_text())
            found.append(f"{link.readlink()} {flags}")
    return found
