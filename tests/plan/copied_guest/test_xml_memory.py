"""The memory of libvirt's XML of a domain: what the guest has of it, and what was taken from it."""

from __future__ import annotations

import pytest

from tests.plan.copied_guest.guests import keys, with_device, with_element
from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.copied_guest.xml_guest import guest_of_xml

SIZES = "<size unit='GiB'>16</size><requested unit='GiB'>3</requested>"


def read(text: str, size: str = "<memory unit='GiB'>1</memory>") -> FoundGuest:
    return guest_of_xml(text.replace("<memory unit='GiB'>1</memory>", size), "x.xml", "a test")


def is_smaller(guest: FoundGuest) -> bool:
    return any("a balloon has taken the rest" in line for line in guest.found.lacks)


@pytest.mark.parametrize(("current", "size"), [("<current unit='GiB'>2</current>", 6), ("", 7)])
def test_of_virtio_mem_counts_what_the_guest_was_given(current: str, size: int) -> None:
    device = f"<memory model='virtio-mem'><target>{SIZES}{current}</target></memory>"
    sizes = f"<memory unit='GiB'>20</memory><currentMemory unit='GiB'>{size}</currentMemory>"
    guest = read(with_device(device), sizes)
    assert keys(guest)["memory"] == f"{size} GiB"
    where = "<memory unit='GiB'>20</memory> without what virtio-mem has not given it"
    assert guest.found.said["memory"].where == where
    assert not is_smaller(guest)


def test_memory_of_a_dimm_counts_as_it_is() -> None:
    device = "<memory model='dimm'><target><size unit='GiB'>16</size></target></memory>"
    assert keys(read(with_device(device), "<memory unit='GiB'>20</memory>"))["memory"] == "20 GiB"


@pytest.mark.parametrize(
    ("current", "taken"),
    [
        ("<currentMemory>1048576</currentMemory>", False),
        ("<currentMemory unit='MiB'>1024</currentMemory>", False),
        ("<currentMemory unit='MiB'>1023</currentMemory>", True),
    ],
)
def test_a_balloon_has_taken_what_is_missing_in_bytes(current: str, taken: bool) -> None:
    assert is_smaller(read(with_element(current))) is taken


@pytest.mark.parametrize("count", [1, 2])
def test_nodes_are_counted_without_what_stands_beside_them(count: int) -> None:
    cells = "".join(f"<cell id='{place}' cpus='{place}' memory='1' unit='GiB'/>" for place in range(count))
    numa = f"<numa><!-- nodes -->{cells}<interconnects><latency value='5'/></interconnects></numa>"
    given = with_element("").replace("<cpu mode='host-passthrough'/>", f"<cpu>{numa}</cpu>")
    lines = [line for line in read(given).found.lacks if "<numa>" in line]
    assert lines == ([] if count == 1 else ["<numa> with 2 cells: guests of the lab have one node"])


def test_pages_of_other_sizes_are_lines() -> None:
    pages = "<page size='2' unit='MiB' nodeset='0'/><page size='1' unit='GiB' nodeset='1'/>"
    guest = read(with_element(f"<memoryBacking><hugepages>{pages}</hugepages></memoryBacking>"))
    words = "<page size='1' unit='GiB' nodeset='1'/> of hugepages: guests of the lab have pages of one size"
    assert keys(guest)["huge_pages"] == "2 MiB" and words in guest.found.lacks
