"""The lab's addresses: none is given twice, and all lie in the network that is set aside for benchmarks."""

import re
from ipaddress import IPv4Address
from pathlib import Path

from vmlab.model.names import (
    BRIDGE_MAC,
    HOST_ADDRESS,
    HOST_PLACE,
    NETWORK,
    PREFIX,
    elastic_address,
    guest_address,
    guest_key,
    guest_mac,
    guest_of,
)
from vmlab.model.run import MOST_OF_EACH, MOST_TILES

PLACES = [(tile, position) for tile in range(1, MOST_TILES + 1) for position in range(MOST_OF_EACH)]


def test_every_guest_of_the_largest_cell_has_addresses_of_its_own() -> None:
    given = [address(*place) for place in PLACES for address in (guest_address, elastic_address)]
    assert len({HOST_ADDRESS, *given}) == 1 + 2 * len(PLACES)
    assert all(IPv4Address(address) in NETWORK for address in given)
    assert len({BRIDGE_MAC, *(guest_mac(*place) for place in PLACES)}) == 1 + len(PLACES)


def test_names_and_addresses_are_those_on_record() -> None:
    assert (guest_key(1, "file-a"), guest_address(1, 0), guest_mac(3, 2)) == (
        "t1-file-a",
        "198.18.1.10",
        "52:54:00:12:03:0c",
    )
    assert elastic_address(1, 0) == "198.19.1.10"
    assert BRIDGE_MAC == "52:54:00:c6:12:01"
    assert (guest_of(guest_key(12, "file-a")), guest_of(HOST_PLACE)) == ("file-a", "host")
    assert f"{HOST_ADDRESS}/{PREFIX}" == "198.18.0.1/15"


def test_no_other_file_writes_them_again() -> None:
    vmlab = Path(__file__).parents[2] / "vmlab"
    again = re.compile(r"198\.1[89]\.|vmlab0|52:54:00")
    files = [file for file in vmlab.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    found = {file.relative_to(vmlab).as_posix() for file in files if again.search(file.read_text(errors="replace"))}
    assert found == {"model/names.py"}
