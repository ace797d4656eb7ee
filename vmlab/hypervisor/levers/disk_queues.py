"""`queues`: the queues of the first disk. Of the data disk's the guest itself says how many it uses (`guest_setup`)."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof


class RootQueuesLever(GuestLever):
    """libvirt's attribute ``queues`` of the driver, which `domain_xml` sets."""

    keys = ("queues",)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the device's number; a guest of fewer CPUs uses as many of them as it has CPUs."""
        found = qemu.property(qemu.device_of("root"), "num-queues")
        yield qemu.proof("queues", str(qemu.asked.queues), str(found), "QOM property num-queues")


LEVER = RootQueuesLever()
