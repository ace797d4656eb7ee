"""Levers of a guest's disks: the XML that libvirt is given, and what a QEMU, real or made up, proves of them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.hypervisor.block_layer import BlockLayer
from tests.hypervisor.conftest import spec
from tests.hypervisor.libvirt.test_domain_xml import FILES, FROZEN, IMAGE, ON_FILE, SCHEMA, TCG
from vmlab.hypervisor.disks.overlays import make_qcow2
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.levers.disk_allocation import PreallocationLever
from vmlab.hypervisor.levers.disk_limit import limits_kept
from vmlab.hypervisor.levers.guest_lever import RunningQemu, all_levers, proofs
from vmlab.hypervisor.libvirt.domain_xml import data_devices_xml, data_disk_xml, domain_xml
from vmlab.hypervisor.protocols import DiskRequests
from vmlab.model.scenarios.disk_levers import TRIMMED_BYTES
from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES, GuestAttributes

DATA = {"data_bytes": 2**26}
ALL = {
    "io": "native",
    "iothread": True,
    "detect_zeroes": "on",
    "limit_iops": 500,
    "limit_bandwidth": 10**8,
    "limit_iops_burst": 900,
    "limit_burst_length": 5,
    **DATA,
    "data_io": "io_uring",
    "data_iothread": "shared",
    "data_format": "qcow2",
    "data_cluster_bytes": 2**17,
    "data_table_cache_bytes": 2**20,
    "data_detect_zeroes": "unmap",
    "data_limit_iops": 200,
    "data_limit_bandwidth": 10**7,
    "data_limit_bandwidth_burst": 10**8,
}


def given(**asked: Any) -> DomainSpec:
    return spec("web-1", "none", **{"data_cache": "none", **asked})


def test_a_lever_is_in_no_list_and_its_keys_are_attributes_of_guests() -> None:
    keys = [key for lever in all_levers() for key in lever.keys]
    assert len(keys) == len(set(keys))
    assert set(keys) < set(GUEST_ATTRIBUTES)
    assert {"io", "data_iothread", "data_format"} < set(keys)


@pytest.mark.skipif(not SCHEMA.exists(), reason="libvirt's schemas are not installed")
@pytest.mark.parametrize("files", [FILES, FROZEN])
@pytest.mark.parametrize("bus", ["virtio", "scsi"])
def test_libvirts_schema_takes_all_of_them(files: Any, bus: str) -> None:
    schema, one = etree.RelaxNG(etree.parse(SCHEMA)), given(**ALL, data_bus=bus)
    domain = etree.fromstring(domain_xml(one, "run1", IMAGE, files, TCG))
    devices = domain.find("devices")
    assert devices is not None
    plugged = [etree.fromstring(text) for text in (*data_devices_xml(one), data_disk_xml(one, ON_FILE))]
    devices.extend(plugged)
    assert schema.validate(domain), schema.error_log


def test_each_disk_has_its_own_value_and_the_data_disk_that_of_the_first_one_otherwise() -> None:
    one = given(**ALL)
    root = etree.fromstring(domain_xml(one, "run1", IMAGE, FILES, TCG))
    data = etree.fromstring(data_disk_xml(one, ON_FILE))
    assert root.findtext("iothreads") == "2"
    assert [root.xpath(f"string(devices/disk/driver/@{name})") for name in ("io", "iothread")] == ["native", "1"]
    assert [data.xpath(f"string(driver/@{name})") for name in ("io", "iothread")] == ["io_uring", "2"]
    assert [root.findtext("devices/disk/iotune/total_iops_sec"), data.findtext("iotune/total_iops_sec")] == [
        "500",
        "200",
    ]
    tuned = [{one.tag: one.text for one in node.iterfind(".//iotune/*")} for node in (root, data)]
    assert tuned == [
        {
            "total_iops_sec": "500",
            "total_iops_sec_max": "900",
            "total_iops_sec_max_length": "5",
            "total_bytes_sec": "100000000",
        },
        {
            "total_iops_sec": "200",
            "total_iops_sec_max": "900",
            "total_iops_sec_max_length": "5",
            "total_bytes_sec": "10000000",
            "total_bytes_sec_max": "100000000",
            "total_bytes_sec_max_length": "5",
        },
    ]
    assert data.find("driver").get("type") == "qcow2"  # type: ignore[union-attr]
    assert data.findtext("driver/metadata_cache/max_size") == str(2**20)
    same = etree.fromstring(data_disk_xml(given(io="native", iothread="both", **DATA), ON_FILE))
    assert [same.xpath(f"string(driver/@{name})") for name in ("io", "iothread")] == ["native", "1"]


def test_disks_that_name_one_iothread_share_it() -> None:
    one = given(iothread="both", **DATA).resources
    assert one.iothreads == ("both",)
    assert given(iothread=True, **DATA).resources.iothreads == ("root", "data")
    assert given(iothread=True, data_iothread=False, **DATA).resources.iothreads == ("root",)


def test_behind_virtio_scsi_queues_and_iothread_are_the_controllers() -> None:
    one = given(data_bus="scsi", data_queues=3, data_iothread=True, **DATA)
    (controller,) = map(etree.fromstring, data_devices_xml(one))
    disk = etree.fromstring(data_disk_xml(one, ON_FILE))
    assert dict(controller.find("driver").attrib) == {"queues": "3", "iothread": "1"}  # type: ignore[union-attr]
    assert disk.xpath("string(target/@bus)") == "scsi"
    assert {"queues", "iothread"}.isdisjoint(disk.find("driver").attrib)  # type: ignore[union-attr]
    assert data_devices_xml(given(**DATA)) == []


class Made:
    """A QEMU that was made up: its monitor's answers, and its folder below a /proc."""

    def __init__(self, folder: Path, answers: Mapping[str, Any], properties: Mapping[tuple[str, str], Any]) -> None:
        self.folder = folder
        self._answers = answers
        self._properties = properties
        (folder / "fd").mkdir(parents=True)
        (folder / "maps").write_text("")

    def opened(self, *places: str) -> None:
        for place in places:
            (self.folder / "fd" / str(len(list((self.folder / "fd").iterdir())))).symlink_to(place)

    def thread(self, number: int, nanoseconds: int) -> None:
        folder = self.folder / "task" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"{nanoseconds} 0 1\n")

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        if command == "qom-get":
            assert arguments is not None
            return self._properties[arguments["path"].rpartition("/")[2], arguments["property"]]
        return self._answers[command]


def found(made: Made, keys: list[str], **asked: Any) -> list[tuple[str, str, str, bool]]:
    seen = proofs(RunningQemu("web", 1, given(**asked).resources, made.folder, made), keys)
    return [(one.lever, one.expected, one.found, one.agrees) for one in seen]


VERSION = {"qemu": {"major": 7, "minor": 2}}


@pytest.mark.parametrize(
    ("ring", "completions", "shown"),
    [
        (False, False, "threads"),
        (True, False, "io_uring"),
        (False, True, "native"),
        (True, True, "io_uring and native"),
    ],
)
def test_the_interface_is_what_the_kernel_shows_of_the_process(
    tmp_path: Path, ring: bool, completions: bool, shown: str
) -> None:
    made = Made(tmp_path / "qemu", {"query-version": VERSION}, {})
    made.opened("/run/disks/web.qcow2", "socket:[7]", *["anon_inode:[io_uring]"] * ring)
    (made.folder / "maps").write_text("7f0000000000-7f0000001000 r-xp /usr/bin/qemu\n")
    if completions:
        with (made.folder / "maps").open("a") as file:
            file.write("7f2adc0000-7f2adc1000 rw-s 00000000 00:0f 1234 /[aio] (deleted)\n")
    for asked in ("threads", "native", "io_uring"):
        ((key, expected, got, agrees),) = found(made, ["io"], io=asked)
        assert (key, expected, got, agrees) == ("io", asked, shown, asked == shown)


def test_two_disks_with_two_interfaces_need_both_of_them(tmp_path: Path) -> None:
    made = Made(tmp_path / "qemu", {"query-version": VERSION}, {})
    made.opened("anon_inode:[io_uring]")
    asked = {"io": "threads", "data_io": "io_uring", **DATA}
    assert [one[3] for one in found(made, ["io", "data_io"], **asked)] == [True, True]
    asked |= {"io": "native"}
    assert [one[2:] for one in found(made, ["io", "data_io"], **asked)] == [("io_uring", False)] * 2


def test_a_qemu_whose_event_loops_have_rings_shows_linux_aio_alone(tmp_path: Path) -> None:
    made = Made(tmp_path / "qemu", {"query-version": {"qemu": {"major": 10, "minor": 2}}}, {})
    made.opened("anon_inode:[io_uring]")
    assert [found(made, ["io"], io=asked)[0][2:] for asked in ("threads", "io_uring", "native")] == [
        ("threads", True),
        ("io_uring", True),
        ("threads", False),
    ]


def test_an_iothread_is_that_of_the_device_and_must_have_run(tmp_path: Path) -> None:
    threads = [{"id": "iothread1", "thread-id": 7}, {"id": "iothread2", "thread-id": 8}]
    links = {
        ("virtio-disk0", "iothread"): "/objects/iothread1",
        ("virtio-disk1", "iothread"): "/objects/iothread2",
        ("scsi0", "iothread"): "",
    }
    made = Made(tmp_path / "qemu", {"query-iothreads": threads}, links)
    made.thread(7, 1_000_000)
    made.thread(8, 0)
    key = ["iothread"]
    assert found(made, key, iothread=True) == [("iothread", "iothread1", "iothread1", True)]
    assert found(made, key, iothread=False) == [("iothread", "none", "iothread1", False)]
    never = ("iothread", "iothread2", "iothread2, which has not worked", False)
    assert found(made, key, iothread=True, **DATA)[1:] == [never]
    made.thread(8, 900_000)
    assert found(made, key, iothread=True, **DATA)[1:] == [never]
    made.thread(8, 1_100_000)
    assert found(made, key, iothread=True, **DATA)[1:] == [("iothread", "iothread2", "iothread2", True)]
    assert found(made, ["data_iothread"], data_iothread=True, data_bus="scsi", **DATA) == [
        ("data_iothread", "iothread1", "none", False)
    ]


def test_limits_and_zeroes_are_those_that_qemu_says_of_each_disk(tmp_path: Path) -> None:
    def disk(number: int, **inserted: Any) -> dict[str, Any]:
        return {"qdev": f"/machine/peripheral/virtio-disk{number}/virtio-backend", "inserted": inserted}

    blocks = [
        {"qdev": "/machine/unattached/device[3]"},
        disk(0, iops=500, bps=0, detect_zeroes="off"),
        disk(1, iops=500, bps=0, detect_zeroes="unmap"),
    ]
    made = Made(tmp_path / "qemu", {"query-block": blocks}, {})
    keys = ["limit_iops", "data_limit_iops", "limit_bandwidth", "detect_zeroes", "data_detect_zeroes"]
    asked = {"limit_iops": 500, "data_limit_iops": 200, "data_detect_zeroes": "on", **DATA}
    assert found(made, keys, **asked) == [
        ("detect_zeroes", "off", "off", True),
        ("data_detect_zeroes", "on", "unmap", False),
        ("limit_iops", "500/s", "500/s", True),
        ("limit_bandwidth", "none", "none", True),
        ("data_limit_iops", "200/s", "500/s", False),
        ("limit_bandwidth", "none", "none", True),
    ]


DATA_ALONE = ["data_io", "data_iothread", "data_detect_zeroes", "data_limit_iops", "data_limit_burst_length"]


@pytest.mark.parametrize("meddled", [False, True])
def test_a_key_of_the_data_disk_that_other_cells_set_is_proved_too(tmp_path: Path, meddled: bool) -> None:
    inserted = {"iops": 700, "iops_max": 900, "detect_zeroes": "on"} if meddled else {"iops": 0, "detect_zeroes": "off"}
    blocks = [{"qdev": "/machine/peripheral/virtio-disk1/virtio-backend", "inserted": inserted}]
    answers = {"query-version": VERSION, "query-block": blocks, "query-iothreads": []}
    links = {(f"virtio-disk{number}", "iothread"): "/objects/iothread1" if meddled else "" for number in (0, 1)}
    made = Made(tmp_path / "qemu", answers, links)
    if meddled:
        made.opened("anon_inode:[io_uring]")
    shown = ("io_uring", "iothread1", "on", "700/s", "1 s") if meddled else ("threads", "none", "off", "none", "none")
    assert sorted(found(made, DATA_ALONE, **DATA)) == sorted(
        (key, usual, one, not meddled)
        for key, usual, one in zip(DATA_ALONE, ("threads", "none", "off", "none", "none"), shown, strict=True)
    )


def test_bursts_are_those_that_qemu_says_and_last_a_second_unless_told(tmp_path: Path) -> None:
    inserted = {"iops": 5, "iops_max": 9, "iops_max_length": 1, "bps": 600, "bps_max": 700, "bps_max_length": 4}
    blocks = [{"qdev": "/machine/peripheral/virtio-disk0/virtio-backend", "inserted": inserted}]
    made = Made(tmp_path / "qemu", {"query-block": blocks}, {})
    keys = ["limit_iops_burst", "limit_bandwidth_burst", "limit_burst_length"]
    both = {"limit_iops": 5, "limit_iops_burst": 9, "limit_bandwidth": 600, "limit_bandwidth_burst": 800}
    assert found(made, keys, **both) == [
        ("limit_iops_burst", "9/s", "9/s", True),
        ("limit_bandwidth_burst", "800/s", "700/s", False),
        ("limit_burst_length", "1 s", "1 s and 4 s", False),
    ]
    del inserted["bps_max"], inserted["bps_max_length"]
    assert found(made, keys, **both, limit_burst_length=4)[2] == ("limit_burst_length", "4 s", "1 s", False)
    inserted.clear()
    assert found(made, keys) == [(key, "none", "none", True) for key in keys]


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ({"limit_iops": 500}, 5051),
        ({"limit_iops": 500, "limit_iops_burst": 900}, 5901),
        ({"limit_iops": 500, "limit_iops_burst": 900, "limit_burst_length": 3}, 7701),
        ({"limit_bandwidth": 10**7}, 101_000_000 + 2**26),
        ({"limit_bandwidth": 10**7, "limit_bandwidth_burst": 10**8}, 200_000_000 + 2**26),
    ],
)
def test_a_disk_does_no_more_than_limit_burst_and_one_request(asked: dict[str, int], most: int) -> None:
    one, before = given(**asked), DiskRequests(3, 0, 70, 70)
    (key,) = [name for name in ("limit_iops", "limit_bandwidth") if name in asked]
    for done in (most, most + 1):
        after = DiskRequests(9, 0, *((70 + done, 0) if key == "limit_iops" else (10**6, 70 + done)))
        (proof,) = limits_kept(one, {"root": before}, {"root": after}, 10.0)
        assert (proof.lever, proof.agrees, proof.found.endswith(" in 10.0 s")) == (key, done == most, True)
    assert list(limits_kept(given(), {"root": before}, {"root": before}, 10.0)) == []


def test_a_limit_of_the_data_disk_is_held_against_what_that_disk_did() -> None:
    one = given(limit_iops=100, data_limit_iops=10, **DATA)
    before = {"root": DiskRequests(0), "data": DiskRequests(0)}
    after = {"root": DiskRequests(0, None, 60), "data": DiskRequests(0, None, 60)}
    proofs = list(limits_kept(one, before, after, 1.0))
    assert [(proof.lever, proof.expected, proof.agrees) for proof in proofs] == [
        ("limit_iops", "at most 111 requests in 1.0 s", True),
        ("data_limit_iops", "at most 12 requests in 1.0 s", False),
    ]


@pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
@pytest.mark.parametrize("wanted", ["off", "metadata", "falloc", "full"])
def test_what_was_allocated_beforehand_shows_in_the_file(tmp_path: Path, wanted: str) -> None:
    file, size = tmp_path / "disk.qcow2", 2**25
    one = given(data_format="qcow2", data_preallocation=wanted, data_extended_l2=True, **DATA).resources
    make_qcow2(file, size, one)
    inserted = {"drv": "qcow2", "file": str(file)}
    blocks = [{"qdev": "/machine/peripheral/virtio-disk1/virtio-backend", "inserted": inserted}]
    made = Made(tmp_path / "qemu", {"query-block": blocks}, {})
    for asked in ("off", "metadata", "falloc", "full"):
        resources = one.model_copy(update={"data_preallocation": asked, "data_bytes": size})
        (proof,) = PreallocationLever().prove(RunningQemu("web", 1, resources, made.folder, made))
        assert (proof.found, proof.agrees) == (wanted, asked == wanted)
    with pytest.raises(FileExistsError):
        make_qcow2(file, size, one)


@pytest.mark.parametrize(
    ("reserved", "discard", "shown"),
    [
        (2**26, None, "full"),
        (0, None, "thin"),
        (2**26 - TRIMMED_BYTES, None, "thin"),
        (2**26 - TRIMMED_BYTES, "unmap", "full"),
        (TRIMMED_BYTES, "ignore", "thin"),
    ],
)
def test_a_raw_disk_that_was_reserved_has_its_blocks(
    tmp_path: Path, reserved: int, discard: str | None, shown: str
) -> None:
    file, size = tmp_path / "disk.raw", 2**26
    with file.open("wb") as opened:
        opened.truncate(size)
        if reserved:
            os.posix_fallocate(opened.fileno(), 0, reserved)
    blocks = [{"qdev": "/machine/peripheral/virtio-disk1/virtio-backend", "inserted": {"file": str(file)}}]
    made = Made(tmp_path / "qemu", {"query-block": blocks}, {})
    for asked in ("thin", "full"):
        given_so = {"allocation": asked, "data_discard": discard, "data_bytes": size}
        seen = found(made, ["allocation", "data_preallocation"], **given_so)
        assert seen == [("allocation", asked, shown, asked == shown)]
    assert found(made, ["allocation"], data_bytes=size, backing="rbd:pool") == []


@contextmanager
def qemu(aio: str, *, iothread: bool, file: Path) -> Iterator[tuple[Path, BlockLayer]]:
    """A real QEMU without a guest, with a disk such as libvirt gives to one: its folder in /proc, its monitor."""
    ours, theirs = socket.socketpair()
    file.write_bytes(bytes(2**20))
    node = {"driver": "file", "filename": str(file), "aio": aio, "cache": {"direct": True}, "node-name": "n"}
    device = "virtio-blk-pci,id=virtio-disk0,drive=n"
    words = ["-machine", "q35", "-accel", "tcg", "-m", "32", "-nodefaults", "-display", "none"]
    if iothread:
        words += ["-object", "iothread,id=iothread1"]
        device += ",iothread=iothread1"
    words += ["-blockdev", json.dumps(node), "-device", device]
    argv = ["qemu-system-x86_64", *words, "-chardev", f"socket,id=m,fd={theirs.fileno()}", "-mon", "m,mode=control"]
    process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], cwd=file.parent)
    theirs.close()
    try:
        with ours, ours.makefile("rw") as stream:
            ours.settimeout(60)
            yield Path("/proc") / str(process.pid), BlockLayer(process.pid, stream)
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
@pytest.mark.parametrize("iothread", [False, True])
@pytest.mark.parametrize("aio", ["threads", "native", "io_uring"])
def test_a_real_qemu_shows_the_interface_that_it_was_told_to_use(tmp_path: Path, aio: str, iothread: bool) -> None:
    with qemu(aio, iothread=iothread, file=tmp_path / "disk.raw") as (process, monitor):
        for asked in ("threads", "native", "io_uring"):
            running = RunningQemu("web", 1, given(io=asked, iothread=iothread).resources, process, monitor)
            (proof,) = proofs(running, ["io"])
            assert (proof.found, proof.agrees) == (aio, asked == aio)


def test_every_lever_is_marked_so_that_its_delivery_is_judged() -> None:
    """All but the memory for tables, which nothing shows."""
    from vmlab.model.scenarios.lever import levers_of

    judged = {one.key for one in levers_of(GuestAttributes).values()}
    assert {key for lever in all_levers() for key in lever.keys} - judged == {"data_table_cache"}


def test_libvirts_own_settings_are_put_where_their_paths_lead_and_read_back_from_there(tmp_path: Path) -> None:
    paths = {
        "features/pmu/@state": "off",
        "clock/timer[hpet]/@present": "no",
        "clock/timer[pit]/@tickpolicy": "delay",
        "memoryBacking/discard": True,
        "disk/driver/@event_idx": "off",
        "data/driver/@queue_size": 256,
        "interface/driver/@tx_queue_size": 512,
    }
    one = given(libvirt=paths, **DATA)
    domain = etree.fromstring(domain_xml(one, "run1", IMAGE, FILES, TCG))
    devices = domain.find("devices")
    assert devices is not None
    devices.append(etree.fromstring(data_disk_xml(one, ON_FILE)))
    if SCHEMA.exists():
        schema = etree.RelaxNG(etree.parse(SCHEMA))
        assert schema.validate(domain), schema.error_log
    assert [timer.get("name") for timer in domain.iterfind("clock/timer")] == ["hpet", "pit"]
    assert len(domain.findall("features")) == 1 and domain.find("features/acpi") is not None
    made = Made(tmp_path / "qemu", {}, {})

    def proof_of(xml: etree._Element) -> Any:
        described = etree.tostring(xml, encoding="unicode")
        (found,) = proofs(RunningQemu("web", 1, one.resources, made.folder, made, lambda: described), ["libvirt"])
        return found

    right = proof_of(domain)
    assert right.agrees and right.by == "as libvirt says, not proved"
    assert right.expected.startswith("features/pmu/@state off, clock/timer[hpet]/@present no")
    for path in ("features/pmu", "clock/timer[@name='hpet']", "memoryBacking/discard", "devices/disk[2]/driver"):
        other = etree.fromstring(etree.tostring(domain))
        (wrong,) = other.findall(path)
        (around,) = other.findall(f"{path}/..")
        around.remove(wrong)
        assert not proof_of(other).agrees, path


def test_packed_queues_are_those_that_the_guest_has_taken(tmp_path: Path) -> None:
    taken = {"transports": ["VIRTIO_F_VERSION_1: Device compliant", "VIRTIO_F_RING_PACKED: Device supports packed"]}
    for features, shown in ((taken, "true"), ({"transports": []}, "false"), ({}, "missing")):
        made = Made(tmp_path / shown, {"x-query-virtio-status": {"guest-features": features}}, {})
        for asked, word in ((True, "true"), (False, "false")):
            ((_, expected, got, agrees),) = found(made, ["data_packed"], data_packed=asked, **DATA)
            assert (expected, got, agrees) == (word, shown, word == shown)


def test_a_disk_behind_virtio_scsi_is_found_by_its_id(tmp_path: Path) -> None:
    """QEMU gives the path of a device on PCI, and the id of one on SCSI."""
    blocks = [{"qdev": "scsi0-0-0-0", "inserted": {"drv": "qcow2", "iops": 7, "detect_zeroes": "on"}}]
    made = Made(tmp_path / "qemu", {"query-block": blocks}, {})
    asked = {"data_bus": "scsi", "data_limit_iops": 7, **DATA}
    assert found(made, ["data_limit_iops"], **asked) == [("data_limit_iops", "7/s", "7/s", True)]
