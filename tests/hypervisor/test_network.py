"""The bridge lives in the lab's own network namespace, and is refused everywhere else."""

import json

import psutil
import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.network import BRIDGE, make_bridge, remove_bridge
from vmlab.model.errors import HypervisorUnavailable


def test_the_bridge_has_an_address_no_delay_and_no_way_out(isolated: Start) -> None:
    program = isolated("bridge")
    said, complaints = program.communicate(timeout=30)
    assert program.returncode == 0, complaints
    assert json.loads(said) == {
        "during": {
            "links": ["lo", "vmlab0"],
            "default_routes": 0,
            "loopback_up": 1,
            "address": "198.18.0.1/15",
            "stp": 0,
            "up": 1,
        },
        "after": {"links": ["lo"], "default_routes": 0, "loopback_up": 1},
    }


def test_the_hosts_own_network_is_never_touched() -> None:
    for action in (make_bridge, remove_bridge):
        with pytest.raises(HypervisorUnavailable, match="vmlab run"):
            action()
    assert BRIDGE not in psutil.net_if_addrs()
