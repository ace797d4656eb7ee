"""Guests of added images get the lab's addresses by DHCP, from a real server on the lab's bridge."""

from __future__ import annotations

import json

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor import lab_network as dhcp
from vmlab.hypervisor.lab_network import AddressServer, require_dhcp
from vmlab.model.errors import HypervisorUnavailable

SOON = 200
MASK, ROUTER, NAME_SERVER = "1", "3", "6"


def test_each_card_is_offered_its_own_address_and_no_way_out(isolated: Start) -> None:
    out, err = isolated("addresses").communicate(timeout=SOON)
    assert out, err
    said = json.loads(out)
    assert said["first"] == said["again"] and said["first"]["address"] == "198.18.1.10"
    assert said["second"]["address"] == "198.18.1.11" and said["stranger"] is None
    assert said["first"]["options"][MASK] == "fffe0000"
    assert not {ROUTER, NAME_SERVER} & said["first"]["options"].keys()
    assert said["children"] == []


def test_a_host_without_the_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dhcp, "PROGRAM", "no-such-program")
    with pytest.raises(HypervisorUnavailable, match="no-such-program, which is missing") as caught:
        require_dhcp()
    assert caught.value.remedy == "apt-get install --no-install-recommends dnsmasq-base"


async def test_nothing_is_started_on_the_hosts_own_network() -> None:
    with pytest.raises(HypervisorUnavailable):
        await AddressServer().serve({"52:54:00:12:01:0a": "198.18.1.10"})


async def test_who_gives_no_address_needs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dhcp, "PROGRAM", "no-such-program")
    server = AddressServer()
    await server.serve({})
    await server.stop()
