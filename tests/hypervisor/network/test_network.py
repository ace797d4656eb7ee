"""The bridge lives in the lab's own network namespace, and is refused everywhere else."""

import json

import psutil
import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.lab_network import far_host_network, make_bridge, remove_bridge
from vmlab.hypervisor.overlay_network.guest_networks import overlay_network
from vmlab.model.errors import HypervisorUnavailable
from vmlab.model.names import BRIDGE


def test_the_bridge_has_an_address_no_delay_and_no_way_out(isolated: Start) -> None:
    program = isolated("bridge")
    said, complaints = program.communicate(timeout=240)
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


def test_the_host_answers_itself_over_a_cable_and_nothing_of_it_stays(isolated: Start) -> None:
    program = isolated("far_host")
    said, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    assert json.loads(said) == {
        "answer": {"peer": "198.18.0.1", "links": ["lo", "vmlab2"]},
        "during": ["lo", "vmlab0", "vmlab1"],
        "after": ["lo", "vmlab0"],
        "descriptors_left": 0,
        "named": False,
    }


def test_frames_cross_the_tunnel_whole_and_nothing_of_it_stays(isolated: Start) -> None:
    program = isolated("overlay")
    out, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    said = json.loads(out)
    assert said["during"] == ["lo", "vmlab0", "vmlab3", "vmlab4", "vmlab6", "vmlab7"]
    assert said["got"] == 2**20
    assert said["over"] > 2**20, "what the station got came over the cable, with headers around it"
    assert said["after"] == ["lo", "vmlab0"]


def test_the_hosts_own_network_is_never_touched() -> None:
    for action in (make_bridge, remove_bridge, far_host_network().__enter__, overlay_network().__enter__):
        with pytest.raises(HypervisorUnavailable, match="vmlab run"):
            action()
    assert BRIDGE not in psutil.net_if_addrs()
