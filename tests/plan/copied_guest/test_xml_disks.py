"""The disks of libvirt's XML of a domain: what they have where nothing is said, and what lies below them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.plan.copied_guest.guests import disk_keys, with_disk
from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.copied_guest.xml_guest import guest_of_xml
from vmlab.telemetry.source import THE_HOST


def read(text: str) -> FoundGuest:
    return guest_of_xml(text, "x.xml", "a test")


@pytest.mark.parametrize(
    ("machine", "queues"),
    [
        ("pc-q35-5.1", 1),
        ("pc-q35-5.2", 2),
        ("pc-i440fx-rhel7.6.0", 1),
        ("pc-q35-rhel8.3.0", 1),
        ("pc-q35-rhel8.4.0", 2),
        ("pc-q35-rhel10.0.0", 2),
        ("pc-i440fx-focal", 1),
        ("pc-q35-groovy-hpb", 1),
        ("pc-q35-noble-v2", 2),
        ("q35", 2),
    ],
)
def test_an_old_machine_type_has_one_queue(machine: str, queues: int) -> None:
    (disk,) = read(with_disk().replace("pc-q35-7.2", machine)).disks
    assert disk.found.value("queues") == queues
    is_assumed = machine in ("pc-q35-noble-v2", "q35")
    assert disk.found.said["queues"].where.endswith(f", which is assumed for {machine}") is is_assumed


@pytest.mark.parametrize(("more", "cache"), [("<shareable/>", "none"), ("<shareable/><readonly/>", "writeback")])
def test_a_disk_that_is_shared_has_the_cache_mode_that_libvirt_gives_it(more: str, cache: str) -> None:
    (disk,) = read(with_disk(more=more)).disks
    assert disk.found.value("cache") == cache
    usual = "libvirt's for a <shareable/> disk" if cache == "none" else "QEMU's own mode"
    assert disk.found.said["cache"].where == f"vda has no cache=: {usual}"
    assert disk_keys(read(with_disk("cache='writethrough'", more=more)))["cache"] == "writethrough"


@pytest.mark.parametrize("more", ["", "<backingStore/>"])
def test_a_file_that_the_header_names_is_a_line_where_the_xml_says_nothing(more: str, tmp_path: Path) -> None:
    file = tmp_path / "d.qcow2"
    file.write_bytes(struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 112, 9, 16, 40 << 30).ljust(200, b"\0"))
    text = with_disk("type='qcow2'", source=f"<source file='{file}'/>", more=more)
    (disk,) = guest_of_xml(text, "x.xml", "a test", THE_HOST).disks
    line = (
        f"vda: it reads another file below it, by the qcow2 header of {file}; the lab's data disk has nothing below it"
    )
    assert (line in disk.found.lacks) is (more == "")
