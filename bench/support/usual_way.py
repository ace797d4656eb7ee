"""Starts guests the usual way: firmware, boot loader, stock initrd, cloud-init, DHCP. See `usual_image`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lxml import etree

from vmlab.guests.ssh import RunKeys
from vmlab.hypervisor.disks.overlays import make_overlay
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.journal import JournalEntry
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.libvirt.domain_xml import domain_xml
from vmlab.model.names import BRIDGE

LEASE = "198.18.0.{}"
_FIRST_ADDRESS = 100
_SEED_KIB = 1024


class UsualHypervisor(EmbeddedHypervisor):
    """Starts such guests as well, on the same bridge and with the same machine but for how it boots."""

    async def start_usual(self, base: Path, spec: DomainSpec, seed: Path) -> None:
        """One guest from its overlay on `base`, with cloud-init's `seed` as a second disk."""
        platform = await self._platform_facts.platform()
        self._disks.mkdir(parents=True, exist_ok=True)
        files = self._files_of(spec.name, None)
        self.journal.add(JournalEntry("file", str(files.overlay)))
        await call(f"{spec.name}: disk", 60, make_overlay, base, files.overlay, spec.resources.disk_bytes)
        direct = domain_xml(spec, self._lab, BootImage(base, base, base, ""), files, platform)
        await call(f"{spec.name}: starting", 120, self._connection.createXML, _by_itself(direct, seed), 0)


def _by_itself(text: str, seed: Path) -> str:
    """The lab's own domain, but booting from its disk, and with one disk more."""
    domain = etree.fromstring(text)
    boot = domain.find("os")
    devices = domain.find("devices")
    assert boot is not None and devices is not None
    for tag in ("kernel", "initrd", "cmdline"):
        found = boot.find(tag)
        assert found is not None
        boot.remove(found)
    etree.SubElement(boot, "boot", dev="hd")
    disk = etree.SubElement(devices, "disk", type="file", device="disk")
    etree.SubElement(disk, "driver", name="qemu", type="raw")
    etree.SubElement(disk, "source", file=str(seed))
    etree.SubElement(disk, "target", dev="vdb", bus="virtio")
    etree.SubElement(disk, "readonly")
    return etree.tostring(domain, encoding="unicode")


def address(number: int) -> str:
    """What guest `number`, from 0, is leased."""
    return LEASE.format(_FIRST_ADDRESS + number)


def make_seed(folder: Path, name: str, keys: RunKeys) -> Path:
    """cloud-init's NoCloud disk: name, the key that may log in, and a host key, so that none needs to be made."""
    seed = folder / f"{name}.seed"
    private = keys.host_private(name).decode().replace("\n", "\n    ")
    public = keys.hosts[name].export_public_key("openssh").decode().strip()
    user = folder / f"{name}.user"
    user.write_text(
        "#cloud-config\ndisable_root: false\n"
        f"ssh_authorized_keys:\n  - {keys.authorized_line()}\n"
        f"ssh_keys:\n  ed25519_private: |\n    {private}\n  ed25519_public: {public}\n"
    )
    meta = folder / f"{name}.meta"
    meta.write_text(f"instance-id: {name}\nlocal-hostname: {name}\n")
    _quietly(["mkfs.vfat", "-n", "CIDATA", "-C", str(seed), str(_SEED_KIB)])
    for file, inside in ((user, "user-data"), (meta, "meta-data")):
        _quietly(["mcopy", "-i", str(seed), str(file), f"::{inside}"])
    return seed


@contextmanager
def leases(specs: Sequence[DomainSpec], folder: Path) -> Iterator[None]:
    """A DHCP server on the lab's bridge while the block runs; it exists inside the lab's namespace alone."""
    hosts = [f"--dhcp-host={spec.mac},{address(number)},{spec.name}" for number, spec in enumerate(specs)]
    server = subprocess.Popen(
        [
            *(
                "dnsmasq",
                "--keep-in-foreground",
                "--conf-file=/dev/null",
                "--port=0",
                "--user=root",
                "--log-facility=-",
            ),
            *(f"--interface={BRIDGE}", "--bind-interfaces", "--dhcp-authoritative", "--no-ping"),
            *(f"--dhcp-range={address(0)},{address(99)},255.254.0.0", f"--dhcp-leasefile={folder / 'leases'}"),
            *hosts,
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def _quietly(argv: Sequence[str]) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
