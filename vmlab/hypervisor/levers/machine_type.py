"""`machine`, `firmware`: the board that QEMU emulates, and what starts on it before the guest's kernel.

A guest sees both, so that a snapshot fits one value alone. The kernel is handed over by QEMU under either firmware, so
the guest's disk needs nothing for UEFI. OVMF's flash is without one for variables, which would be a file more of each
guest: it keeps them in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu
from vmlab.hypervisor.levers.qemu_offers import uefi_loader
from vmlab.model.errors import HypervisorError
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.guest import GuestResources

PRODUCT, VENDOR = "/sys/class/dmi/id/product_name", "/sys/class/dmi/id/bios_vendor"
EFI = "/sys/firmware/efi/fw_platform_size"
"""Which a guest has that started by UEFI."""
_TYPES = {"q35": "pc-q35-", "pc": "pc-i440fx-"}
_PRODUCTS = {"q35": "Q35", "pc": "i440FX"}
"""By value how QEMU's machine type begins, and what is in the name that the guest's kernel reads."""
_NO_PROPERTY = "pflash0' not found"
"""How QEMU's error ends (qom/object.c)."""


class MachineLever(GuestLever):
    """libvirt's ``os``."""

    keys = ("machine", "firmware")
    reads = (PRODUCT, VENDOR, EFI)

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """On ``pc`` without the ports of PCI Express, which that board does not have."""
        devices, system = domain.find("devices"), domain.find("os")
        assert devices is not None and system is not None, "every domain of the lab has them"
        if asked.machine == "pc":
            for kind in system.iterfind("type"):
                kind.set("machine", asked.machine)
            for controller in devices.findall("controller[@type='pci']"):
                devices.remove(controller)
        if asked.firmware == "uefi":
            if (flash := uefi_loader()) is None:
                raise HypervisorError("this host has no UEFI firmware for QEMU")
            loader = etree.Element("loader", readonly="yes", type="pflash", stateless="yes")
            loader.text = str(flash)
            system.insert(1, loader)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """QEMU's machine and its flash, and what the guest's kernel found where it could be asked."""
        kind = str(qemu.monitor("qom-get", {"path": "/machine", "property": "type"}))
        by_type = next((name for name, begin in _TYPES.items() if kind.startswith(begin)), kind)
        yield qemu.proof("machine", qemu.asked.machine, by_type, f"QEMU's machine {kind}")
        yield qemu.proof("firmware", qemu.asked.firmware, _firmware(qemu), "QEMU's flash")
        if PRODUCT in qemu.inside:
            product = qemu.inside[PRODUCT].strip()
            by_product = next((name for name, part in _PRODUCTS.items() if part in product), product or MISSING)
            yield qemu.proof("machine", qemu.asked.machine, by_product, f"{PRODUCT} of the guest: {product}")
            found = "uefi" if qemu.inside.get(EFI, "").strip() else "bios"
            by = f"{EFI} of the guest; its firmware is of {qemu.inside[VENDOR].strip() or 'nobody known'}"
            yield qemu.proof("firmware", qemu.asked.firmware, found, by)


def _firmware(qemu: RunningQemu) -> str:
    """``uefi`` where the machine has flash with firmware in it; QEMU has no such property of a machine without."""
    try:
        return "uefi" if qemu.monitor("qom-get", {"path": "/machine", "property": "pflash0"}) else "bios"
    except HypervisorError as error:
        return "bios" if _NO_PROPERTY in str(error) else MISSING
