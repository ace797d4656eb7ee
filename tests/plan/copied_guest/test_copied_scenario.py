"""The text of the scenario: valid, planned by this host, each line with its source, what cannot be had as a comment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.copied_guest.guests import ROOMY, VM100, WEB01, of_proxmox, throttled_node, with_disk
from tests.plan.copied_guest.test_process_guest import DEVICE
from vmlab.plan.copied_guest.copied_scenario import copied_scenario
from vmlab.plan.copied_guest.found_guest import FoundGuest, Said
from vmlab.plan.copied_guest.process_guest import guest_of_process
from vmlab.plan.copied_guest.qm_guest import guest_of_qm_config
from vmlab.plan.copied_guest.trial import Trial
from vmlab.plan.copied_guest.xml_guest import guest_of_xml
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan, validate_all
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.plan.terms import HostFacts, Overrides
from vmlab.telemetry.source import THE_HOST, Roots

NOWHERE = Roots(Path("/no"), Path("/no"), Path("/no"))
GUESTS = {
    "libvirt": lambda: guest_of_xml(WEB01, "x.xml", "a test"),
    "one disk": lambda: guest_of_xml(with_disk("cache='writethrough'"), "x.xml", "a test"),
    "qm config": lambda: guest_of_qm_config(VM100, "x.conf", "a test"),
    "Proxmox's process": lambda: guest_of_process(42, of_proxmox(throttled_node(), DEVICE), NOWHERE),
}


def written(guest: FoundGuest, host: HostFacts = ROOMY) -> tuple[str, ScenarioFile]:
    text = copied_scenario(guest, Trial(host))
    return text, read(Path("x.yaml"), text, {})


def with_two(driver: str, more: str, other: str) -> FoundGuest:
    """A guest with a second disk, whose driver has the attributes `other`."""
    first = with_disk(driver, more=more)
    source = "<source file='/no/e'/><target dev='vdb' bus='virtio'/>"
    second = f"<disk type='file'><driver type='raw' {other}/>{source}</disk></devices>"
    return guest_of_xml(first.replace("</devices>", second), "x.xml", "a test")


def lines_of(text: str, key: str) -> list[str]:
    """The lines of a key of the guest, as comments too."""
    return [line.strip() for line in text.splitlines() if line.strip().removeprefix("# ").startswith(f"{key}: ")]


@pytest.mark.parametrize("source", GUESTS)
def test_what_is_written_is_valid_and_fits_the_host(source: str) -> None:
    _, file = written(GUESTS[source]())
    validate_all(file, {}, ())
    plan = make_plan(file, Overrides(), ROOMY)
    check_fit(plan, ROOMY)
    assert {"as-it-is"} < {str(cell.axes["setting"]) for cell in plan.cells}


@pytest.mark.parametrize("source", GUESTS)
def test_every_line_of_the_guest_says_where_it_was_read(source: str) -> None:
    text, _ = written(GUESTS[source]())
    guest = text.partition("  vm:\n")[2].partition("workloads:")[0].splitlines()
    assert len(guest) > 8
    assert all(line.startswith("    ") and "  # " in line for line in guest)


def test_the_guest_has_what_the_domain_has() -> None:
    _, file = written(GUESTS["libvirt"]())
    given = file.scenario.guests["vm"].given()
    assert given == {
        "vcpus": "4",
        "queues": "4",
        "cpu_shares": "2048",
        "cpu_quota": "50.0",
        "cpu": "host -svm",
        "pin": "0;1;0;1",
        "emulator_pin": "0-1",
        "huge_pages": "2 MiB",
        "ksm": "false",
        "firmware": "uefi",
        "cache": "none",
        "io": "native",
        "iothread": "true",
        "data": "8 GiB",
        "data_queues": "2",
        "data_cache": "writeback",
        "data_io": "threads",
        "data_bus": "scsi",
        "data_discard": "ignore",
        "data_detect_zeroes": "on",
        "data_limit_iops": "500",
        "nic_queues": "4",
        "vhost": "true",
        "mtu": "9000",
        "libvirt": "interface/driver/@rx_queue_size 1024",
    }


def test_queues_that_a_guest_cannot_use_are_left_out() -> None:
    found = GUESTS["libvirt"]()
    found.found.said["vcpus"] = Said("vcpus", 2, "two")
    text, file = written(found)
    given = file.scenario.guests["vm"].given()
    assert (given["queues"], given["nic_queues"], given["data_queues"]) == ("2", "2", "2")
    assert text.count("; it uses one for each of its CPUs") == 2


def test_each_point_changes_one_thing_of_the_data_disk() -> None:
    _, file = written(GUESTS["one disk"]())
    assert {name: point.sets for name, point in file.scenario.axes["setting"].points.items()} == {
        "as-it-is": {},
        "cache-none": {"guests.vm.data_cache": "none"},
        "cache-writeback": {"guests.vm.data_cache": "writeback"},
        "io-io_uring": {"guests.vm.data_io": "io_uring"},
        "iothread-on": {"guests.vm.data_iothread": True},
        "queues-1": {"guests.vm.data_queues": 1},
        "bus-scsi": {"guests.vm.data_bus": "scsi"},
    }


def test_native_io_is_left_with_the_cache_that_it_needs() -> None:
    _, file = written(guest_of_xml(with_disk("cache='none' io='native'"), "x.xml", "a test"))
    points = file.scenario.axes["setting"].points
    assert points["cache-writeback"].sets == {"guests.vm.data_cache": "writeback", "guests.vm.data_io": "threads"}


def test_what_the_host_cannot_have_is_a_comment_with_the_reason() -> None:
    lacking, unsettable = {"cpu host -svm": "there is no KVM"}, {"huge_pages 2 MiB": "it is a container"}
    host = replace(ROOMY, lacking=lacking, unsettable=unsettable)
    text, file = written(GUESTS["libvirt"](), host)
    (cpu,), (pages,) = lines_of(text, "cpu"), lines_of(text, "huge_pages")
    assert cpu.startswith("# cpu: host -svm") and cpu.endswith("there is no KVM")
    assert pages.startswith("# huge_pages: 2 MiB") and pages.endswith("it is a container")
    check_fit(make_plan(file, Overrides(), host), host)


def test_too_much_memory_is_halved_until_it_fits() -> None:
    host = replace(ROOMY, memory_available_bytes=3 << 30, memory_total_bytes=4 << 30)
    text, file = written(GUESTS["libvirt"](), host)
    assert file.scenario.guests["vm"].memory_bytes == 2 << 30
    assert "4 GiB in <memory unit='KiB'>4194304</memory>, and here 2 GiB: " in text


def test_a_disk_is_as_large_as_the_labs_image_at_least(tmp_path: Path) -> None:
    disk = tmp_path / "d.raw"
    disk.write_bytes(bytes(4096))
    source = f"<source file='{disk}'/>"
    host = replace(ROOMY, images={"debian": 2743 << 20})
    text, file = written(guest_of_xml(with_disk("type='raw'", source=source), "x.xml", "a test", THE_HOST), host)
    assert file.scenario.guests["vm"].disk_bytes == 2743 << 20
    assert "4 KiB in the size of" in text and "; from 2743 MiB to 64 TiB here" in text


def test_a_host_that_can_run_nothing_is_told_and_the_text_is_valid() -> None:
    text, file = written(GUESTS["libvirt"](), replace(ROOMY, memory_available_bytes=0))
    assert "On this host nothing of it can run:" in text
    validate_all(file, {}, ())


def test_a_limit_of_one_disk_does_not_become_one_of_both() -> None:
    text, file = written(with_two("", "<iotune><total_iops_sec>100</total_iops_sec></iotune>", ""))
    assert file.scenario.guests["vm"].limit_iops is None
    assert lines_of(text, "limit_iops")[0].startswith("# limit_iops: 100")


def test_bursts_of_a_disk_are_those_of_the_lab() -> None:
    limits = "<total_iops_sec>100</total_iops_sec><total_iops_sec_max>300</total_iops_sec_max>"
    tune = f"<iotune>{limits}<total_iops_sec_max_length>5</total_iops_sec_max_length></iotune>"
    _, file = written(guest_of_xml(with_disk(more=tune), "x.xml", "a test"))
    guest = file.scenario.guests["vm"]
    assert (guest.limit_iops, guest.limit_iops_burst, guest.limit_burst_length) == (100, 300, 5)


def test_disks_that_share_an_iothread_share_it_in_the_lab() -> None:
    _, file = written(with_two("iothread='1'", "", "iothread='1'"))
    assert file.scenario.guests["vm"].iothreads == ("shared",)


def test_what_the_first_disk_has_and_the_labs_has_not_is_a_line() -> None:
    text, _ = written(with_two("type='raw' packed='on'", "", ""))
    assert "# - vda: packed true, format raw, discard ignore: the lab has these for the data disk alone" in text
    text, _ = written(with_two("type='qcow2' discard='unmap' packed='off'", "", ""))
    assert "the lab has these" not in text
    alone, _ = written(GUESTS["one disk"]())
    assert "the lab has these" not in alone, "its data disk is like it"


def test_a_disk_that_is_only_read_is_not_the_one_that_is_tested() -> None:
    seed = "<disk type='file'><driver type='raw'/><source file='/no/seed'/><target dev='vdb' bus='virtio'/><readonly/>"
    data = "</disk><disk type='file'><driver type='raw'/><source file='/no/d2'/><target dev='vdc' bus='virtio'/></disk>"
    both = with_disk().replace("</devices>", f"{seed}{data}</devices>")
    text, _ = written(guest_of_xml(both, "x.xml", "a test"))
    assert "one change of its disk vdc" in text
    assert "# - vdb (/no/seed), which is read-only: the lab's guests have two disks" in text
    alone = with_disk().replace("</devices>", f"{seed}</disk></devices>")
    text, _ = written(guest_of_xml(alone, "x.xml", "a test"))
    assert "one change of its disk vda" in text


def with_files(*files: str) -> str:
    """A scenario of a domain whose disks vda, vdb, … are these files."""
    disks = [
        f"<disk type='file'><driver type='raw'/><source file='{file}'/><target dev='vd{letter}' bus='virtio'/></disk>"
        for letter, file in zip("bcd", files[1:], strict=False)
    ]
    first = with_disk("type='raw'", source=f"<source file='{files[0]}'/>")
    text = first.replace("</devices>", f"{''.join(disks)}</devices>")
    return written(guest_of_xml(text, "x.xml", "a test", THE_HOST))[0]


@pytest.mark.parametrize(
    "seed",
    ["/k/noCloud.iso", "/nova/1/disk.config", "vms/1_disk.config", "/p/vm-102-cloudinit.qcow2", "/p/cloud-init.img"],
)
def test_a_disk_for_the_first_boot_is_not_the_one_that_is_tested(seed: str) -> None:
    text = with_files("/no/root", seed, "/no/data")
    assert "one change of its disk vdc" in text
    assert f"# - vdb ({seed}): by its name it is for the guest's first boot; another disk is tested" in text
    for root in ("/no/root", "/images/debian-12-nocloud-amd64.qcow2"):
        assert "one change of its disk vda" in with_files(root, seed)
    assert "one change of its disk vdb" in with_files("/no/root", "/no/cloud-init-tests/data")


def test_a_disk_that_is_smaller_than_the_labs_is_not_the_one_that_is_tested(tmp_path: Path) -> None:
    for name, size in (("small", 4 << 20), ("large", 64 << 20)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    text = with_files("/no/root", f"{tmp_path}/small", f"{tmp_path}/large")
    assert "one change of its disk vdc" in text
    assert f"# - vdb ({tmp_path}/small): it has 4 MiB, and the lab's data disk 64 MiB at least" in text


def test_a_disk_with_several_iothreads_has_one_in_the_lab() -> None:
    threads = "<iothreads><iothread id='1'/><iothread id='2'/></iothreads>"
    given = with_disk().replace("<driver name='qemu' />", f"<driver name='qemu'>{threads}</driver>")
    _, file = written(guest_of_xml(given, "x.xml", "a test"))
    assert file.scenario.guests["vm"].iothreads
    assert "iothread-on" not in file.scenario.axes["setting"].points


def test_cache_unsafe_is_copied_and_allowed() -> None:
    _, file = written(guest_of_xml(with_disk("cache='unsafe'"), "x.xml", "a test"))
    assert file.scenario.allow.unsafe_cache
    assert file.scenario.guests["vm"].cache == "unsafe"


def test_strange_names_stay_in_their_comments() -> None:
    guest = guest_of_xml(with_disk().replace("<name>one</name>", "<name>a&#10;b: ${c} é #</name>"), "x.xml", "a test")
    text, file = written(guest)
    assert file.scenario.name == "like-a-b-c"
    assert text.startswith("# A guest like a b: ${c} é #: a test.")


def test_a_comment_has_no_more_than_a_person_reads() -> None:
    long = with_disk().replace("<driver name='qemu' ", f"<driver name='qemu' odd='{'a' * 10_000}' ")
    text, _ = written(guest_of_xml(long, "x.xml", "a test"))
    assert "<driver odd='aaa" in text and max(map(len, text.splitlines())) < 600
