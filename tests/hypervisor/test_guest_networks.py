"""The tunnel and a guest's limit in the kernel, with a station in the guest's place; and what a kernel lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from tests.hypervisor.conftest import Start, spec
from tests.hypervisor.programs.limits import BYTES, RATE
from vmlab.hypervisor import network_probe
from vmlab.hypervisor.domain_xml import nic_xml
from vmlab.hypervisor.guest_networks import GuestNetworks
from vmlab.hypervisor.limits import bucket_bytes
from vmlab.model.errors import HypervisorError, HypervisorUnavailable
from vmlab.model.names import limiter_of
from vmlab.model.results import NetworkCounts

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


def test_a_limited_station_is_slow_both_ways_and_all_of_it_is_counted(isolated: Start) -> None:
    program = isolated("limits")
    out, complaints = program.communicate(timeout=280)
    assert program.returncode == 0, complaints
    said = json.loads(out)
    mine = limiter_of(spec().mac)
    assert mine in said["during"]
    assert {"vmlab3", "vmlab6", "vmlab7"} < set(said["during"])
    assert (said["there"], said["back"]) == (BYTES, BYTES)
    # Whatever else the machine does makes it slower still.
    least = (BYTES - bucket_bytes(RATE)) / (RATE / 8)
    assert min(said["out"], said["home"]) > least
    assert min(said["carried"]) > BYTES, "what was carried has headers around it"
    assert min(said["tunnel"], said["cable"]) > 2 * BYTES
    assert said["plain"] == ["lo", "vmlab0"], "no guest is behind a tunnel any more, and none has a limit"


def test_a_bucket_holds_ten_milliseconds_and_whole_packets_at_least() -> None:
    assert bucket_bytes(10**9) == 1_250_000
    assert bucket_bytes(10**6) == 16 * 1024


def test_a_guest_behind_the_tunnel_is_plugged_into_the_far_bridge() -> None:
    assert "vmlab3" in nic_xml(spec(network="vxlan"))
    assert "vmlab0" in nic_xml(spec())


def test_the_hosts_own_network_gets_neither_tunnel_nor_limit() -> None:
    networks = GuestNetworks(lambda _name: None)
    with pytest.raises(HypervisorUnavailable, match="vmlab run"):
        networks.make([spec(network="vxlan")])
    with pytest.raises(HypervisorUnavailable, match="vmlab run"):
        networks.limit(spec(bandwidth=10**6))


def test_without_either_nothing_is_made_and_nothing_counted() -> None:
    networks = GuestNetworks(lambda _name: None)
    networks.make([spec()])
    networks.release("web-1")
    networks.close()
    assert networks.counts([spec()]) == NetworkCounts(None, None, {})


def test_a_counter_that_is_gone_is_an_error_and_no_zero() -> None:
    networks = GuestNetworks(lambda _name: None)
    networks._limited["web-1"] = "no-such-tap", "no-such-limit"
    with pytest.raises(HypervisorError, match="no network link is called no-such-tap"):
        networks.counts([spec()])


@NEEDS_ROOT
def test_the_probe_says_what_this_kernel_lacks_and_leaves_nothing() -> None:
    before = sorted(Path("/sys/class/net").iterdir())
    probe = [sys.executable, "-m", "vmlab.hypervisor.network_probe"]
    said = json.loads(subprocess.run(probe, check=True, capture_output=True, timeout=200).stdout)
    assert set(said) <= {"vxlan", "bandwidth"}
    assert sorted(Path("/sys/class/net").iterdir()) == before


@NEEDS_ROOT
def test_what_fails_in_the_kernel_is_lacking_for_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise NetlinkError(95)

    attempts = {"vxlan": (refuse, "no tunnels"), "bandwidth": (lambda: None, "no limits")}
    monkeypatch.setattr(network_probe, "_ATTEMPTS", attempts)
    assert network_probe.lacking() == {"vxlan": "no tunnels: Operation not supported"}
