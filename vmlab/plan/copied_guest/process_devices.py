"""The devices of a QEMU process but for its disks, and its board: what is copied of them, and what the lab has not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmlab.model.quantities import whole
from vmlab.model.visible import cut
from vmlab.plan.copied_guest.found_guest import Findings, say_settings
from vmlab.plan.copied_guest.left_over import is_usual, left_options, option_text
from vmlab.telemetry.domains.qemu_arguments import node, pairs
from vmlab.telemetry.domains.qemu_disks import switch
from vmlab.telemetry.domains.qemu_options import QemuOptions

_OTHERS = {
    **dict.fromkeys(("vfio-pci", "usb-host", "vhost-vdpa-device"), "a device of the host is passed through"),
    "tpm-": "guests of the lab have no TPM",
    **dict.fromkeys(("vhost-user-fs", "virtio-9p"), "guests of the lab share no folder with the host"),
    "ivshmem": "guests of the lab share no memory",
    "vhost-vsock": "guests of the lab have no vsock",
    **dict.fromkeys(("intel-iommu", "virtio-iommu"), "guests of the lab have no IOMMU"),
    **dict.fromkeys(("virtio-vga", "virtio-gpu", "qxl", "VGA"), "guests of the lab have no screen"),
    "usb-storage": "the lab's disks are virtio or scsi",
    "ich9-intel-hda": "guests of the lab have no sound",
    "i6300esb": "guests of the lab have no watchdog",
    "pc-dimm": "memory that is plugged in is part of the lab's guest from its start",
    "virtio-mem": "memory that is plugged in is part of the lab's guest from its start",
}
_LONGEST = 71
_CARDS = ("virtio-net", "e1000", "rtl8139", "vmxnet3", "ne2k", "i82", "pcnet", "tulip")
NO_TUNING = (
    *("driver", "id", "bus", "addr", "bootindex", "romfile", "multifunction", "acpi-index", "vectors"),
    *("disable-legacy", "disable-modern"),
)
"""Options of any device that change nothing that is measured."""
SETTINGS = {
    **{key: key for key in ("event_idx", "ioeventfd", "ats")},
    "iommu_platform": "iommu",
    "page-per-vq": "page_per_vq",
}
"""Options of any virtio device that `libvirt` sets, with their names there."""
_SETTINGS_OF_CARD = {**SETTINGS, "rx_queue_size": "rx_queue_size", "tx_queue_size": "tx_queue_size"}
_OF_CARD = ("netdev", "mac", "mq", "host_mtu", *_SETTINGS_OF_CARD, *NO_TUNING)
_OF_BACKEND = (
    *("type", "id", "queues", "vhost", "ifname", "script", "downscript", "br", "helper"),
    *("fd", "fds", "vhostfd", "vhostfds"),
)
_OF_MACHINE = (
    *("type", "accel", "usb", "dump-guest-core", "graphics", "smm", "mem-merge", "memory-backend"),
    *("hpet", "vmport", "pflash0", "pflash1"),
)
"""What is read of the board, and what changes nothing that is measured."""


def devices_of(options: QemuOptions, found: Findings) -> None:
    """Note all but the disks."""
    _card(options, found)
    _others(options, found)
    _board(options, found)


def _board(options: QemuOptions, found: Findings) -> None:
    """Switches of the board, and its clock."""
    machine = options.machine
    if switch(machine.get("hpet")) is False or options.all("no-hpet"):
        say_settings(found, {"clock/timer[hpet]/@present": "no"}, "-machine hpet=off")
    if (vmport := switch(machine.get("vmport"))) is not None:
        say_settings(
            found, {"features/vmport/@state": "on" if vmport else "off"}, f"-machine vmport={machine['vmport']}"
        )
    taken = (*_OF_MACHINE, *(key for key in machine if key.startswith(("smp.", "memory."))))
    if switch(machine.get("acpi")) is True:
        taken += ("acpi",)
    found.lack_key("-machine ", left_options(machine, taken))
    if (base := options.merged("base", "rtc").get("base", "utc")) != "utc":
        found.lack(f"-rtc base={base}: the lab's clock is UTC")


def _card(options: QemuOptions, found: Findings) -> None:
    cards = [one for one in options.nodes("device") if str(one.get("driver", "")).startswith(_CARDS)]
    for card in cards[1:]:
        found.lack(f"-device {card.get('driver')},id={card.get('id', '')}: the lab's guests have one network card")
    legacy = [*options.all("nic"), *options.all("net")]
    if legacy and legacy != ["none"]:
        found.lack(f"-nic {cut(legacy[0], _LONGEST)}: not read; the lab's network card is virtio")
    elif not cards and (legacy or options.all("nodefaults")):
        found.lack("its arguments name no network card; guests of the lab have one")
    elif not cards:
        found.lack("no -nic: QEMU's own card; the lab's network card is virtio")
    if not cards:
        return
    card = cards[0]
    driver = str(card.get("driver", ""))
    if not driver.startswith("virtio-net"):
        found.lack(f"-device {driver}: the lab's network card is virtio")
        return
    backends = [node(value, "type") for value in options.all("netdev")]
    backend: Mapping[str, Any] = next((one for one in backends if one.get("id") == card.get("netdev")), {})
    kind = str(backend.get("type", "tap"))
    if kind not in ("tap", "bridge"):
        found.lack(f"-netdev {kind}: the lab's network card is on a bridge")
    else:
        found.lack_key(f"-netdev {kind},", left_options(backend, _OF_BACKEND))
    queues = whole(str(backend.get("queues", ""))) or len(str(backend.get("fds", "")).split(":"))
    if queues > 1:
        found.say("nic_queues", queues, f"-netdev id={backend.get('id')}: {queues} queues")
    if (vhost := switch(backend.get("vhost"))) is not None:
        found.say("vhost", vhost, f"-netdev id={backend.get('id')},vhost={backend.get('vhost')}")
    if mtu := whole(str(card.get("host_mtu", ""))):
        found.say("mtu", mtu, f"-device {driver},host_mtu={mtu}")
    for option, path in _SETTINGS_OF_CARD.items():
        if option in card and not is_usual(path, card[option]):
            value = option_text(card[option])
            found.say(f"libvirt interface/driver/@{path}", value, f"-device {driver},{option}={value}")
    found.lack_key(f"-device {driver},", left_options(card, _OF_CARD))


def _others(options: QemuOptions, found: Findings) -> None:
    for device in options.nodes("device"):
        driver = str(device.get("driver", ""))
        words = next((words for begin, words in _OTHERS.items() if driver.startswith(begin)), None)
        if words is not None:
            at = device.get("host") or device.get("id") or ""
            found.lack(f"-device {driver} {at}".rstrip() + f": {words}")
        elif driver.startswith("virtio-balloon"):
            found.lack_key(f"-device {driver},", left_options(device, NO_TUNING))
    for name in ("vga", "fsdev", "virtfs", "tpmdev", "bios"):
        for value in options.all(name):
            if value not in ("none", "std"):
                found.lack(f"-{name} {cut(value, _LONGEST)}: no key")
    firmware = [one for one in options.all("drive") if pairs(one, "file").get("if") == "pflash"]
    if firmware or any(key.startswith("pflash") for key in options.machine):
        found.say("firmware", "uefi", "its flash (pflash)")
