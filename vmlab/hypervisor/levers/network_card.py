"""`nic_queues`, `vhost`, `mtu`: pairs of queues of a guest's network card, who moves its packets, the largest one."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu, child_of
from vmlab.model.axes import axis_word
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.guest import GuestResources

VHOST = "/dev/vhost-net"
_CARD = "net0"
"""libvirt's alias of a guest's only card."""
MTU_INSIDE = "/sys/class/net/eth0/mtu"
"""Of the only card of a guest with the lab's image; of an image of a user's it may have another name."""


class NetworkCardLever(GuestLever):
    """libvirt's ``queues`` and ``name`` of the card's driver."""

    keys = ("nic_queues", "vhost")

    def describe_card(self, card: etree._Element, asked: GuestResources) -> None:
        """Nothing for a card as libvirt makes it, with one pair of queues."""
        wanted = {} if asked.vhost is None else {"name": "vhost" if asked.vhost else "qemu"}
        if asked.nic_queues > 1:
            wanted["queues"] = str(asked.nic_queues)
        if wanted:
            driver = child_of(card, "driver")
            for name, value in wanted.items():
                driver.set(name, value)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the virtqueues that guest and device have, two to a pair and one for control, and by open files."""
        queues = qemu.virtio_status(_CARD).get("num-vqs")
        pairs = MISSING if queues is None else str(queues // 2)
        yield qemu.proof("nic_queues", str(qemu.asked.nic_queues), pairs, "x-query-virtio-status")
        if qemu.asked.vhost is not None:
            found = axis_word(VHOST in qemu.descriptors())
            yield qemu.proof("vhost", axis_word(qemu.asked.vhost), found, "/proc/PID/fd")


class MtuLever(GuestLever):
    """libvirt's ``mtu`` of the card, which it gives to the tap as well."""

    keys = ("mtu",)
    reads = (MTU_INSIDE,)

    def describe_card(self, card: etree._Element, asked: GuestResources) -> None:
        """Nothing where the kernel's own MTU will do."""
        if asked.mtu is not None:
            etree.SubElement(card, "mtu", size=str(asked.mtu))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the MTU that the device announces, and the one that the guest has taken, where that could be read."""
        if qemu.asked.mtu is None:
            return
        wanted = str(qemu.asked.mtu)
        yield qemu.proof("mtu", wanted, str(qemu.property(_CARD, "host_mtu")), "QOM property host_mtu")
        if taken := qemu.inside.get(MTU_INSIDE, "").strip():
            yield qemu.proof("mtu", wanted, taken, f"{MTU_INSIDE} of the guest")
