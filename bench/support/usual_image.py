"""The stand-in for the usual way: the lab's own packages on a disk that boots by itself, with cloud-init and DHCP.

A partitioned disk with a boot loader (syslinux, without a waiting time), Debian's stock initrd, systemd's usual target,
ifupdown with a DHCP client, and cloud-init with its NoCloud source, all as their packages set them up. Only the servers
of the roles are switched off, as in the lab's own image, so that both are timed to the same moment.
Built once, some two minutes, into the cache. Needs the packages syslinux, mtools, dosfstools, fdisk and, to hand out
addresses, dnsmasq-base.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vmlab.guests.image.recipe import PACKAGES, apt_options, debian_sources, running_codename
from vmlab.model.places import cache_folder

ADDED = ("cloud-init", "ifupdown", "isc-dhcp-client", "initramfs-tools", "netbase", "dbus", "sudo", "locales")
SERVERS = ("apache2", "mariadb", "postgresql", "smbd", "nmbd", "samba-ad-dc", "postfix")
MBR = Path("/usr/lib/syslinux/mbr/mbr.bin")

_MIB = 2**20
_BOOT_AT = 1 * _MIB
_BOOT_SIZE = 255 * _MIB
_ROOT_AT = _BOOT_AT + _BOOT_SIZE
_ROOT_SIZE = 4096 * _MIB

_MENU = """DEFAULT linux
PROMPT 0
LABEL linux
KERNEL vmlinuz
APPEND root=/dev/vda2 ro quiet console=ttyS0 initrd=initrd.img
"""
_PARTITIONS = f"""label: dos
start={_BOOT_AT // 512}, size={_BOOT_SIZE // 512}, type=c, bootable
start={_ROOT_AT // 512}, size={_ROOT_SIZE // 512}, type=83
"""
_FSTAB = "/dev/vda2 / ext4 errors=remount-ro 0 1\n"


def usual_image() -> Path:
    """The disk, built where it is missing. Raises CalledProcessError and FileNotFoundError where a tool is missing."""
    address = hashlib.sha256(repr((PACKAGES, ADDED, SERVERS, _MENU, _PARTITIONS)).encode()).hexdigest()[:12]
    place = cache_folder() / "bench"
    disk = place / f"usual-{address}.raw"
    if not disk.exists():
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".usual-", dir=place) as scratch:
            _build(Path(scratch), Path(scratch) / "disk.raw")
            (Path(scratch) / "disk.raw").rename(disk)
    return disk


def _build(scratch: Path, disk: Path) -> None:
    tree = scratch / "tree"
    print("building the image of the usual way", file=sys.stderr)
    _packages(scratch, tree)
    (tree / "etc/fstab").write_text(_FSTAB)
    with disk.open("wb") as file:
        file.truncate(_ROOT_AT + _ROOT_SIZE)
    _run(["sfdisk", "--quiet", str(disk)], _PARTITIONS)
    _boot_partition(scratch, tree, disk)
    blocks = str(_ROOT_SIZE // 4096)
    _run(
        [
            "mke2fs",
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-E",
            f"offset={_ROOT_AT}",
            "-d",
            str(tree),
            str(disk),
            blocks,
        ]
    )
    shutil.rmtree(tree)


def _packages(scratch: Path, tree: Path) -> None:
    codename = running_codename()
    listed, options = scratch / "debian.sources", scratch / "apt.conf"
    listed.write_text("\n".join(source.stanza() for source in debian_sources(codename)))
    options.write_text("".join(f"{line}\n" for line in apt_options()))
    argv = ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", f"--aptopt={options}"]
    argv += [f"--include={','.join([*PACKAGES, *ADDED])}", "--dpkgopt=force-unsafe-io"]
    argv += [f'--customize-hook=chroot "$1" systemctl disable {" ".join(SERVERS)}']
    argv += ["--hook-directory=/usr/share/mmdebstrap/hooks/file-mirror-automount"]
    _run([*argv, codename, str(tree), str(listed)])


def _boot_partition(scratch: Path, tree: Path, disk: Path) -> None:
    boot = scratch / "boot.fat"
    (kernel,) = (tree / "boot").glob("vmlinuz-*")
    (initrd,) = (tree / "boot").glob("initrd.img-*")
    menu = scratch / "syslinux.cfg"
    menu.write_text(_MENU)
    _run(["mkfs.vfat", "-C", str(boot), str(_BOOT_SIZE // 1024)])
    for file, name in ((kernel, "vmlinuz"), (initrd, "initrd.img"), (menu, "syslinux.cfg")):
        _run(["mcopy", "-i", str(boot), str(file), f"::{name}"])
    _run(["syslinux", "--install", str(boot)])
    with disk.open("r+b") as whole:
        whole.write(MBR.read_bytes()[:440])
        whole.seek(_BOOT_AT)
        whole.write(boot.read_bytes())


def _run(argv: Sequence[str], given: str | None = None) -> None:
    subprocess.run(argv, input=given, text=True, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    print(usual_image())
