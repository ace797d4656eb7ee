"""Guests whose processors stand, and of which libvirt is told otherwise than the lab says: what their proofs find."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import libvirt

from tests.hypervisor.conftest import spec
from vmlab.guests.image.building import ensure
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.levers.qemu_offers import uefi_loader
from vmlab.system.rights import why_no_locked_memory

_DATA: dict[str, Any] = {"data_bytes": 2**26, "data_cache": "none"}
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "io": ({"io": "native"}, 'io="native"', 'io="threads"'),
    "data_io": ({**_DATA, "data_io": "io_uring"}, 'io="io_uring"', 'io="threads"'),
    "iothread": ({"iothread": True}, ' iothread="1"', ""),
    "data_iothread": ({**_DATA, "data_iothread": True}, ' iothread="1"', ""),
    "detect_zeroes": ({"detect_zeroes": "on"}, 'detect_zeroes="on"', 'detect_zeroes="off"'),
    "limit_iops": ({"limit_iops": 500}, ">500<", ">900<"),
    "limit_iops_burst": ({"limit_iops": 500, "limit_iops_burst": 900}, ">900<", ">901<"),
    "data_limit_burst_length": (
        {
            **_DATA,
            "data_limit_bandwidth": 10**7,
            "data_limit_bandwidth_burst": 10**8,
            "data_limit_burst_length": 5,
        },
        ">5<",
        ">6<",
    ),
    "data_limit_bandwidth": ({**_DATA, "data_limit_bandwidth": 10**7}, ">10000000<", ">20000000<"),
    "queues": ({"queues": 2}, 'queues="2"', 'queues="1"'),
    "data_format": ({**_DATA, "data_format": "qcow2"}, 'type="qcow2"', 'type="raw"'),
    "backing": ({**_DATA, "backing": "xfs"}, "g-backing.data/", ""),
    "mtu": ({"mtu": 9000}, 'size="9000"', 'size="1500"'),
    "cpu": ({"cpu": "max -avx2"}, 'policy="disable" name="avx2"', 'policy="disable" name="aes"'),
    "cpu of the host": ({"cpu": "host-model"}, 'mode="host-model"', 'mode="maximum"'),
    "machine": ({"machine": "pc"}, 'machine="pc"', 'machine="q35"'),
    "firmware": (
        {"firmware": "uefi"},
        f'<loader readonly="yes" type="pflash" stateless="yes">{uefi_loader()}</loader>',
        "",
    ),
    "pin": ({"pin": "1"}, '<vcpupin vcpu="0" cpuset="1"/>', ""),
    "emulator_pin": ({"emulator_pin": "0"}, 'emulatorpin cpuset="0"', 'emulatorpin cpuset="1"'),
    "huge_pages": (
        {"huge_pages": "2 MiB"},
        '<hugepages>\n      <page size="2048" unit="KiB"/>\n    </hugepages>',
        "",
    ),
    "ksm": ({"ksm": False}, "<nosharepages/>", ""),
    "numa": ({"numa": 0}, 'mode="strict" nodeset="0"', 'mode="preferred" nodeset="0"'),
    "memory_lock": ({"memory_lock": True}, "<locked/>", ""),
    "libvirt": (
        {"libvirt_settings": (("disk/driver/@event_idx", "off"),)},
        'event_idx="off"',
        'event_idx="on"',
    ),
}
"""By lever, the first word, what is asked for, and the words in the XML that are replaced behind the lab's back."""


class Meddled:
    """libvirt's connection, or a domain, which replaces words in each XML; domains start paused."""

    def __init__(self, inner: Any, meddle: list[str]) -> None:
        self._inner = inner
        self._meddle = meddle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _spoilt(self, text: str) -> str:
        _, words, other = self._meddle or ("", "", "")
        return text.replace(words, other) if words else text

    def createXML(self, text: str, flags: int) -> Any:
        text = text if self._meddle[:1] == ["data"] else self._spoilt(text)
        return self._inner.createXML(text, flags | libvirt.VIR_DOMAIN_START_PAUSED)

    def lookupByName(self, name: str) -> Any:
        return Meddled(self._inner.lookupByName(name), self._meddle)

    def attachDeviceFlags(self, text: str, flags: int) -> Any:
        return self._inner.attachDeviceFlags(self._spoilt(text), flags)


class Deceived(EmbeddedHypervisor):
    """Libvirt does not hear from it what it says."""

    meddle: list[str]

    async def open(self) -> None:
        await super().open()
        self.meddle = []
        self._connection = Meddled(self._connection, self.meddle)


async def main(runtime: str, folder: str) -> None:
    """Print one document: by case whether each proof agreed, as asked for and meddled with."""
    built = ensure(lambda _text: None)
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    hypervisor = Deceived(Path(runtime), Path(folder) / "disks", "test", kernel=image.kernel, huge_pages=[2**21])
    await hypervisor.open()
    (Path(folder) / "disks").mkdir(exist_ok=True)
    # What the data disk is where libvirt is told to look beside its file system.
    (Path(folder) / "disks/g-backing.data.raw").write_bytes(bytes(2**26))
    said: dict[str, list[dict[str, bool]]] = {}
    for case, (asked, words, other) in CASES.items():
        lever = case.split()[0]
        if ("memory_lock" in asked and why_no_locked_memory()) or ("firmware" in asked and uefi_loader() is None):
            said[case] = [{"": True}, {"": False}]
            continue
        for meddle in ([], [words, other]):
            hypervisor.meddle[:] = meddle and ["data" if "data_bytes" in asked else "root", *meddle]
            one = spec(f"g-{re.sub('[_ ]', '-', case)}", "none", **asked)
            await hypervisor.create(image, [one])
            if one.resources.data_bytes is not None:
                await hypervisor.plug_data_disks([one])
            proofs = await hypervisor.prove_levers([one], [lever], {})
            said.setdefault(case, []).append({f"{p.lever}: {p.found}": p.agrees for p in proofs})
            await hypervisor.destroy([one.name])
    await hypervisor.close()
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
