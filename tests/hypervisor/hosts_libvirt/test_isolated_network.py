"""The network that a lab has in the host's own libvirt: which range it takes, and what it says."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest
from lxml import etree

from vmlab.hypervisor.libvirt.domain_xml import marked_for
from vmlab.hypervisor.libvirt.marked import free_range, name_of, network_xml
from vmlab.model.errors import HypervisorUnavailable
from vmlab.model.names import NETWORK, guest_address
from vmlab.model.run import MOST_TILES

SCHEMA = Path("/usr/share/libvirt/schemas/network.rng")


@pytest.mark.parametrize(
    ("taken", "found"),
    [
        ([], "198.18.0.0/17"),
        (["10.0.0.0/8", "192.168.122.0/24"], "198.18.0.0/17"),
        (["198.18.5.0/24"], "198.18.128.0/17"),
        (["198.18.0.0/16", "198.19.0.7/32"], "198.19.128.0/17"),
    ],
)
def test_the_first_range_without_a_route_is_taken(taken: list[str], found: str) -> None:
    assert free_range(map(IPv4Network, taken)) == IPv4Network(found)


@pytest.mark.parametrize(
    "taken", [["198.0.0.0/8"], ["198.18.0.0/15"], ["198.18.0.1/32", "198.18.128.0/17", "198.19.0.0/16"]]
)
def test_a_host_with_routes_to_all_of_it_is_refused(taken: list[str]) -> None:
    with pytest.raises(HypervisorUnavailable, match=r"routes to all of 198\.18\.0\.0/15"):
        free_range(map(IPv4Network, taken))


def test_a_range_has_room_for_every_tile_and_lies_where_images_let_guests_be() -> None:
    for number in range(4):
        addresses = free_range(list(NETWORK.subnets(new_prefix=17))[:number])
        last = guest_address(MOST_TILES, 239, addresses)
        assert IPv4Network(last).subnet_of(addresses) and addresses.subnet_of(NETWORK)
        assert last != str(addresses[-1])


def test_it_is_isolated_marked_and_valid() -> None:
    text = network_xml("20261125-1-tile", IPv4Network("198.18.128.0/17"))
    network = etree.fromstring(text)
    assert marked_for(text) == "20261125-1-tile"
    assert network.find("forward") is None and network.find("ip/dhcp") is None
    assert network.xpath("string(ip/@address)") == "198.18.128.1" and network.xpath("string(ip/@prefix)") == "17"
    assert network.findtext("name") == network.xpath("string(bridge/@name)") == name_of("20261125-1-tile")
    assert len(name_of("x" * 80)) <= 15
    if SCHEMA.exists():
        etree.RelaxNG(etree.parse(SCHEMA)).assertValid(network)


def test_two_labs_have_two_networks() -> None:
    assert name_of("one") != name_of("two")


def test_only_the_labs_own_mark_is_read() -> None:
    foreign = "<network><name>vmlab-1</name><metadata><lab xmlns='urn:other' id='test'/></metadata></network>"
    assert marked_for(foreign) is None
    assert marked_for("<domain><name>test-web-1</name></domain>") is None
