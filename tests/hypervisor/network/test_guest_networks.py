"""The tunnel and a guest's limit in the kernel, with a station in the guest's place; and what a kernel lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from tests.hypervisor.conftest import Start, spec
from tests.hypervisor.programs.limits import BYTES, RATE
from tests.hypervisor.programs.translation import ELASTIC, OWN
from vmlab.hypervisor.domain_spec import Translated
from vmlab.hypervisor.libvirt.domain_xml import nic_xml
from vmlab.hypervisor.overlay_network import guest_networks, network_probe
from vmlab.hypervisor.overlay_network.guest_networks import GuestNetworks, bucket_bytes
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


def test_what_goes_by_an_elastic_address_is_translated_and_counted(isolated: Start) -> None:
    program = isolated("translation")
    out, complaints = program.communicate(timeout=280)
    assert program.returncode == 0, complaints
    said = json.loads(out)
    assert said["during"] == ["eip-010a", "eip-010b", "lo", "vmlab0"]
    whole, host = str(BYTES), "198.18.0.1"
    # Of each way: whom its client saw and as whom, whom its server saw and as whom, and whose rules counted it.
    ways = {
        "both": (ELASTIC["far"], OWN["near"], ELASTIC["near"], OWN["far"], {"near", "far"}),
        "in": (ELASTIC["far"], OWN["plain"], OWN["plain"], OWN["far"], {"far"}),
        "out": (OWN["plain"], OWN["far"], ELASTIC["far"], OWN["plain"], {"far"}),
        "host": (ELASTIC["far"], host, host, OWN["far"], {"far"}),
        "to-host": (host, OWN["far"], ELASTIC["far"], host, {"far"}),
    }
    for way, (server, client, seen, served, counts) in ways.items():
        assert said[way]["client"] == [whole, server, client], way
        assert said[way]["server"] == [whole, seen, served], way
        grown = {name for name, ends in said[way]["grown"].items() if min(ends) > BYTES}
        assert grown == counts, way
        assert {name for name, ends in said[way]["grown"].items() if max(ends) > 0} == counts, way
    assert said["management"] == {"client": [whole, OWN["far"], host], "server": [whole, host, OWN["far"]]}
    assert said["uncounted"], "the lab's own way to a guest is no part of what its rules have translated"
    assert said["refused"] == {"near": True, "plain": True}, "others reach it by its elastic address alone"
    assert said["gone"] == "far: the rules that translate its address are gone"
    assert (said["after"], said["tables"], said["forwarding"]) == (["lo", "vmlab0"], 0, "0")


def test_a_kernel_that_does_not_translate_is_told_and_the_guest_is_tried_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def refuse(name: str, *_others: object, **_more: object) -> None:
        tried.append(name)
        raise NetlinkError(95)

    monkeypatch.setattr(guest_networks, "require_isolation", lambda: None)
    monkeypatch.setattr(guest_networks, "put_translation", refuse)
    monkeypatch.setattr(guest_networks, "remove_translation", refuse)
    networks = GuestNetworks(lambda _name: None)
    for _ in range(2):
        with pytest.raises(HypervisorUnavailable, match=r"no elastic address: .*Operation not supported"):
            networks.make([replace(spec(network="nat"), translated=Translated("198.18.1.10", "198.19.1.10"))])
    assert tried == ["web-1"] * 4


def test_rules_that_cannot_be_removed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_others: object, **_more: object) -> None:
        raise NetlinkError(1)

    monkeypatch.setattr(guest_networks, "remove_translation", refuse)
    monkeypatch.setattr(guest_networks, "require_isolation", lambda: None)
    networks = GuestNetworks(lambda _name: None)
    networks._routed["web-1"] = "eip-010a"
    with pytest.raises(HypervisorError, match="web-1: its elastic address cannot be removed"):
        networks.close()


def test_a_bucket_holds_ten_milliseconds_and_whole_packets_at_least() -> None:
    assert bucket_bytes(10**9) == 1_250_000
    assert bucket_bytes(10**6) == 16 * 1024


def test_a_guest_is_plugged_into_the_bridge_of_its_network() -> None:
    assert "vmlab3" in nic_xml(spec(network="vxlan"))
    assert "eip-0035" in nic_xml(replace(spec(network="nat"), mac="52:54:00:12:00:35"))
    assert "vmlab0" in nic_xml(spec())


def test_the_hosts_own_network_gets_no_tunnel_no_rules_and_no_limit() -> None:
    networks = GuestNetworks(lambda _name: None)
    with pytest.raises(HypervisorUnavailable, match="vmlab run"):
        networks.make([spec(network="vxlan")])
    with pytest.raises(HypervisorUnavailable, match="vmlab run"):
        networks.make([replace(spec(network="nat"), translated=Translated("198.18.1.10", "198.19.1.10"))])
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
    probe = [sys.executable, "-m", "vmlab.hypervisor.overlay_network.network_probe"]
    said = json.loads(subprocess.run(probe, check=True, capture_output=True, timeout=200).stdout)
    assert set(said) <= {"vxlan", "nat", "bandwidth"}
    assert sorted(Path("/sys/class/net").iterdir()) == before


@NEEDS_ROOT
def test_what_fails_in_the_kernel_is_lacking_for_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise NetlinkError(95)

    attempts = {"vxlan": (refuse, "no tunnels"), "bandwidth": (lambda: None, "no limits")}
    monkeypatch.setattr(network_probe, "_ATTEMPTS", attempts)
    assert network_probe.lacking() == {"vxlan": "no tunnels: Operation not supported"}
