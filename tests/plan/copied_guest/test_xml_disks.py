"""The disks of libvirt's XML of a domain: what they have where nothing is said, and what lies below them."""

from __future__ import annotations

import pytest

from tests.plan.copied_guest.guests import disk_keys, with_disk
from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.copied_guest.xml_guest import guest_of_xml


def read(text: str) -> FoundGuest:
    return guest_of_xml(text, "x.xml", "a test")


@pytest.mark.parametrize(("more", "cache"), [("<shareable/>", "none"), ("<shareable/><readonly/>", "writeback")])
def test_a_disk_that_is_shared_has_the_cache_mode_that_libvirt_gives_it(more: str, cache: str) -> None:
    (disk,) = read(with_disk(more=more)).disks
    assert disk.found.value("cache") == cache
    usual = "libvirt's for a <shareable/> disk" if cache == "none" else "QEMU's own mode"
    assert disk.found.said["cache"].where == f"vda has no cache=: {usual}"
    assert disk_keys(read(with_disk("cache='writethrough'", more=more)))["cache"] == "writethrough"
