"""`nic_queues`, `mtu`: pairs of queues of a guest's network card, and the largest packet that it sends and takes."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.guest import GuestResources

_CARD = "net0"
"""libvirt's alias of a guest's only card."""


class NetworkCardLever(GuestLever):
    """libvirt's ``queues`` of the card's driver and its ``mtu``, which it gives to the tap as well."""

    keys = ("nic_queues", "mtu")

    def describe_card(self, card: etree._Element, asked: GuestResources) -> None:
        """Nothing for a card as libvirt makes it: one pair of queues, and the kernel's own MTU."""
        if asked.nic_queues > 1:
            etree.SubElement(card, "driver", name="qemu", queues=str(asked.nic_queues))
        if asked.mtu is not None:
            etree.SubElement(card, "mtu", size=str(asked.mtu))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the virtqueues that guest and device have, two to a pair and one for control, and the MTU announced."""
        path = f"/machine/peripheral/{_CARD}/virtio-backend"
        pairs = int(qemu.monitor("x-query-virtio-status", {"path": path})["num-vqs"]) // 2
        yield qemu.proof("nic_queues", str(qemu.asked.nic_queues), str(pairs), "x-query-virtio-status")
        if qemu.asked.mtu is not None:
            announced = str(qemu.property(_CARD, "host_mtu"))
            yield qemu.proof("mtu", str(qemu.asked.mtu), announced, "QOM property host_mtu")


LEVER = NetworkCardLever()
