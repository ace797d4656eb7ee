"""What proves the MTU of a guest's card: what the device announces, and what the guest has taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.levers.guest_lever import RunningQemu, files_inside
from vmlab.hypervisor.levers.network_card import MTU_INSIDE, MtuLever


def found(inside: dict[str, str], announced: int) -> list[tuple[str, bool]]:
    def monitor(command: str, arguments: dict[str, Any] | None = None) -> Any:
        assert command == "qom-get" and arguments == {"path": "/machine/peripheral/net0", "property": "host_mtu"}
        return announced

    qemu = RunningQemu("web", 1, spec(mtu=9000).resources, Path("/proc/1"), monitor, inside=inside)
    return [(one.found, one.agrees) for one in MtuLever().prove(qemu)]


@pytest.mark.parametrize("text", ["9000\n", "1500\n"])
def test_the_guest_has_taken_it(text: str) -> None:
    assert found({MTU_INSIDE: text}, 9000) == [("9000", True), (text.strip(), text == "9000\n")]


def test_a_guest_that_does_not_tell_proves_nothing() -> None:
    for inside in ({}, {MTU_INSIDE: ""}):
        assert found(inside, 9000) == [("9000", True)]
        assert found(inside, 1500) == [("1500", False)]


def test_it_is_read_in_guests_for_this_lever_alone() -> None:
    assert files_inside(["mtu"]) == [MTU_INSIDE]
    assert MTU_INSIDE not in files_inside(["nic_queues", "vhost"])
