"""A proof is read from open descriptors; here they are this process's own, and QMP's words are scripted."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.disks.cache_proof import Qemu, direct_flags
from vmlab.hypervisor.disks.data_disks import DataDisk, PoolDisk
from vmlab.hypervisor.domain_spec import PoolImage
from vmlab.model.results import CacheProof
from vmlab.model.run import CACHE_FLAGS, CACHE_MODES, CacheFlags, CacheMode

OWN = Path("/proc/self")


@contextlib.contextmanager
def opened(file: Path, direct: bool) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    try:
        yield
    finally:
        os.close(descriptor)


class Monitor:
    """QMP's answers, as QEMU 7.2 gives them: a backing file's write cache is always on."""

    def __init__(self, overlay: Path, base: Path, flags: CacheFlags) -> None:
        self.overlay, self.base, self.flags = overlay, base, flags

    def _node(self, file: Path, driver: str) -> dict[str, Any]:
        cache = {"writeback": True, "direct": self.flags.direct, "no-flush": self.flags.no_flush}
        return {"file": str(file), "drv": driver, "cache": cache}

    def __call__(self, command: str) -> Any:
        if command == "query-named-block-nodes":
            files = (self.overlay, "file"), (self.overlay, "qcow2"), (self.base, "file"), (self.base, "raw")
            return [self._node(file, driver) for file, driver in files]
        inserted = self._node(self.overlay, "qcow2")
        inserted["cache"]["writeback"] = self.flags.writeback
        return [{"device": "", "inserted": inserted}, {"device": "empty"}]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    overlay, base = tmp_path / "web-1.qcow2", tmp_path / "root.raw"
    for file in (overlay, base):
        file.write_bytes(bytes(4096))
    return overlay, base


def proofs(mode: CacheMode, files: tuple[Path, Path], really: CacheMode) -> list[CacheProof]:
    flags = CACHE_FLAGS[really]
    with opened(files[0], flags.direct), opened(files[1], flags.direct):
        return Qemu("web", OWN, Monitor(*files, flags)).prove(mode, files)


@pytest.mark.parametrize("mode", CACHE_MODES)
@pytest.mark.parametrize("really", CACHE_MODES)
def test_every_mode_agrees_with_itself_alone(mode: CacheMode, really: CacheMode, files: tuple[Path, Path]) -> None:
    overlay, base = proofs(mode, files, really)
    assert overlay.agrees is (mode == really)
    assert (overlay.file, base.file) == (str(files[0]), str(files[1]))
    assert overlay.o_direct is CACHE_FLAGS[really].direct
    if mode == really:
        assert base.agrees, "the write cache of a backing file counts for nothing"


def test_a_base_image_read_through_the_hosts_cache_is_not_cache_none(files: tuple[Path, Path]) -> None:
    with opened(files[0], True), opened(files[1], False):
        overlay, base = Qemu("web", OWN, Monitor(*files, CACHE_FLAGS["none"])).prove("none", files)
    assert (overlay.agrees, base.agrees) == (True, False)


def test_one_descriptor_of_two_without_the_flag_is_enough_to_disagree(files: tuple[Path, Path]) -> None:
    with opened(files[0], False):
        assert sorted(direct_flags(OWN, files[0])) == [False]
        assert not proofs("none", files, "none")[0].agrees


@pytest.mark.parametrize("mode", CACHE_MODES)
def test_a_base_that_is_opened_by_another_path_than_its_overlay_names(
    mode: CacheMode, files: tuple[Path, Path]
) -> None:
    overlay, base = files
    file = {"driver": "file", "filename": str(overlay)}
    backing = {"driver": "raw", "file": {"driver": "file", "filename": str(base)}}
    place = "json:" + json.dumps({"driver": "qcow2", "backing": backing, "file": file})

    def monitor(command: str) -> Any:
        said = Monitor(*files, CACHE_FLAGS[mode])(command)
        if command == "query-block":
            said[0]["inserted"]["file"] = place
        return said

    with opened(overlay, CACHE_FLAGS[mode].direct), opened(base, CACHE_FLAGS[mode].direct):
        assert all(proof.agrees for proof in Qemu("web", OWN, monitor).prove(mode, files))
        place = place[:60]
        assert not all(proof.agrees for proof in Qemu("web", OWN, monitor).prove(mode, files))


@pytest.mark.parametrize("mode", CACHE_MODES)
def test_a_file_that_nobody_has_open_does_not_agree(mode: CacheMode, files: tuple[Path, Path]) -> None:
    for proof in Qemu("web", OWN, Monitor(*files, CACHE_FLAGS[mode])).prove(mode, files):
        assert not proof.agrees
        assert not proof.o_direct


def test_files_that_are_open_beside_a_disk_are_none_of_it(files: tuple[Path, Path]) -> None:
    one, other = files
    with opened(one, False), opened(other, True):
        assert (direct_flags(OWN, one), direct_flags(OWN, other)) == ([False], [True])


def test_a_descriptor_that_closes_meanwhile_hides_none_of_the_others(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([folder / "9999999", *listed(folder)]))
    with opened(files[0], True):
        assert direct_flags(OWN, files[0]) == [True]


def test_a_proof_says_what_was_expected_in_words(files: tuple[Path, Path]) -> None:
    overlay, base = proofs("none", files, "none")
    assert overlay.expected == "none: o_direct=yes writeback=yes no_flush=no"
    assert base.expected == "none: o_direct=yes no_flush=no"


def test_of_a_file_that_qmp_does_not_know_no_flag_is_claimed(files: tuple[Path, Path], tmp_path: Path) -> None:
    with opened(files[0], False), opened(files[1], False):
        monitor = Monitor(tmp_path / "another", tmp_path / "third", CACHE_FLAGS["unsafe"])
        for proof in Qemu("web", OWN, monitor).prove("unsafe", files):
            assert (proof.o_direct, proof.writeback, proof.direct, proof.no_flush) == (False,) * 4
            assert not proof.agrees


@pytest.mark.parametrize("other", ["a", "z"])
def test_the_write_cache_of_another_disk_counts_for_nothing(other: str, files: tuple[Path, Path]) -> None:
    flags = CACHE_FLAGS["writethrough"]

    def monitor(command: str) -> Any:
        said = Monitor(*files, flags)(command)
        if command == "query-block":
            beside = {"file": str(files[0].with_name(other)), "cache": {"writeback": not flags.writeback}}
            said.insert(0, {"device": "", "inserted": beside})
        return said

    with opened(files[0], flags.direct), opened(files[1], flags.direct):
        assert all(proof.agrees for proof in Qemu("web", OWN, monitor).prove("writethrough", files))


def test_a_device_that_qmp_does_not_know_does_not_agree(files: tuple[Path, Path]) -> None:
    def without_devices(command: str) -> Any:
        return [] if command == "query-block" else Monitor(*files, CACHE_FLAGS["writethrough"])(command)

    with opened(files[0], False), opened(files[1], False):
        overlay, base = Qemu("web", OWN, without_devices).prove("writethrough", files)
    assert (overlay.agrees, base.agrees) == (False, True)


@pytest.mark.parametrize("mode", CACHE_MODES)
def test_a_data_disk_is_a_file_with_nothing_below(mode: CacheMode, files: tuple[Path, Path]) -> None:
    with opened(files[0], CACHE_FLAGS[mode].direct):
        qemu = Qemu("web", OWN, Monitor(*files, CACHE_FLAGS[mode]))
        (proof,) = qemu.prove_data(mode, DataDisk(files[0]))
    assert (proof.agrees, proof.file) == (True, str(files[0]))


class BlockMonitor:
    """QMP's answers for a disk that is a block device."""

    def __init__(self, device: Path, flags: CacheFlags) -> None:
        cache = {"writeback": flags.writeback, "direct": flags.direct, "no-flush": flags.no_flush}
        self._node = {"file": str(device), "drv": "host_device", "cache": cache}

    def __call__(self, command: str) -> Any:
        return [self._node] if command == "query-named-block-nodes" else [{"device": "", "inserted": self._node}]


@pytest.mark.parametrize("direct_below", [True, False])
@pytest.mark.parametrize("attached", ["root.raw", "a", "z"])
def test_a_block_device_counts_with_the_file_below_it_that_is_the_disks_own(
    direct_below: bool, attached: str, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, file = files
    monkeypatch.setattr(loop_devices, "is_direct", lambda _device: direct_below)
    monkeypatch.setattr(loop_devices, "file_of", lambda _device: str(file.with_name(attached)))
    with opened(device, True):
        qemu = Qemu("web", OWN, BlockMonitor(device, CACHE_FLAGS["none"]))
        of_device, of_file = qemu.prove_data("none", DataDisk(file, device))
    assert of_device.agrees
    assert of_file == CacheProof(
        guest="web",
        file=str(file),
        o_direct=direct_below,
        writeback=False,
        direct=direct_below,
        no_flush=False,
        expected=f"block, below {device.name}: o_direct=yes",
        agrees=direct_below and attached == file.name,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
@pytest.mark.parametrize("direct_below", [True, False])
@pytest.mark.parametrize("mode", ["none", "writeback"])
def test_below_a_block_device_the_hosts_cache_is_part_of_the_proof(
    mode: CacheMode, direct_below: bool, tmp_path: Path
) -> None:
    file = tmp_path / "web-1.data.raw"
    file.write_bytes(bytes(2**20))
    held = loop_devices.attach(file, "vmlab:test", writable=True, direct=direct_below)
    device = Path(f"/proc/self/fd/{held}").readlink()
    try:
        with opened(device, CACHE_FLAGS[mode].direct):
            # The test's own descriptor of the device is without the flag; QEMU has none but its own.
            os.set_inheritable(held, False)
            qemu = Qemu("web", OWN, BlockMonitor(device, CACHE_FLAGS[mode]))
            of_device, of_file = qemu.prove_data(mode, DataDisk(file, device, held))
    finally:
        loop_devices.detach(held)
    assert (of_device.file, of_file.file) == (str(device), str(file))
    assert of_device.agrees is (mode == "writeback"), "the descriptor that keeps the device is seen as well"
    assert (of_file.agrees, of_file.o_direct) == (direct_below, direct_below)
    assert "below loop" in of_file.expected


class PoolMonitor:
    """QMP's answers for images in a pool, as QEMU 7.2 gives them: without a path, the options stand as JSON."""

    def __init__(self, flags: CacheFlags, *images: str) -> None:
        self._flags = flags
        self._images = images

    def _node(self, image: str, driver: str) -> dict[str, Any]:
        opened = {"pool": "lab", "image": image, "conf": "/etc/ceph/ceph.conf", "driver": "rbd"}
        options = opened if driver == "rbd" else {"driver": driver, "file": opened}
        # The write cache of a node is on in every mode; that of its device is what was asked for.
        writeback = driver == "rbd" or self._flags.writeback
        cache = {"writeback": writeback, "direct": self._flags.direct, "no-flush": self._flags.no_flush}
        return {"file": f"json:{json.dumps(options)}", "drv": driver, "cache": cache}

    def __call__(self, command: str) -> Any:
        if command == "query-named-block-nodes":
            return [self._node(image, driver) for image in self._images for driver in ("raw", "rbd")]
        return [{"device": ""}, *({"device": "", "inserted": self._node(image, "raw")} for image in self._images)]


DISK = PoolDisk(PoolImage("lab", "vmlab.run.vm", Path("/etc/ceph/ceph.conf")))


@pytest.mark.parametrize("mode", CACHE_MODES)
@pytest.mark.parametrize("really", CACHE_MODES)
def test_an_image_in_a_pool_is_proved_by_what_qmp_says(mode: CacheMode, really: CacheMode) -> None:
    monitor = PoolMonitor(CACHE_FLAGS[really], "vmlab.run.vm", "foreign")
    (proof,) = Qemu("web", OWN, monitor).prove_data(mode, DISK)
    assert proof.agrees is (mode == really)
    assert (proof.file, proof.host_file) == ("rbd:lab/vmlab.run.vm", None)
    assert proof.expected.startswith(f"rbd, {mode}: ")
    found = CACHE_FLAGS[really]
    assert (proof.o_direct, proof.direct, proof.no_flush) == (found.direct, found.direct, found.no_flush)
    assert proof.writeback is found.writeback


def test_an_image_that_qemu_does_not_have_open_is_not_proved() -> None:
    for mode in CACHE_MODES:
        (proof,) = Qemu("web", OWN, PoolMonitor(CACHE_FLAGS[mode], "foreign")).prove_data(mode, DISK)
        assert not proof.agrees


def test_an_image_that_is_open_twice_is_not_proved_by_one_of_them() -> None:
    for mode in CACHE_MODES:
        monitor = PoolMonitor(CACHE_FLAGS[mode], "vmlab.run.vm", "vmlab.run.vm")
        (proof,) = Qemu("web", OWN, monitor).prove_data(mode, DISK)
        assert not proof.agrees


@pytest.mark.parametrize("missing", ["query-block", "query-named-block-nodes"])
def test_an_image_is_proved_by_its_device_and_its_node_and_by_neither_alone(missing: str) -> None:
    monitor = PoolMonitor(CACHE_FLAGS["unsafe"], "vmlab.run.vm")

    def without(command: str) -> Any:
        return [] if command == missing else monitor(command)

    (proof,) = Qemu("web", OWN, without).prove_data("unsafe", DISK)
    assert not proof.agrees
    nodes_known = missing == "query-block"
    assert (proof.writeback, proof.no_flush) == (not nodes_known, nodes_known)


def test_an_image_in_another_pool_is_another_image() -> None:
    elsewhere = PoolDisk(PoolImage("other", "vmlab.run.vm", Path("/etc/ceph/ceph.conf")))
    (proof,) = Qemu("web", OWN, PoolMonitor(CACHE_FLAGS["none"], "vmlab.run.vm")).prove_data("none", elsewhere)
    assert not proof.agrees


@pytest.mark.parametrize("mode", CACHE_MODES)
@pytest.mark.parametrize("missing", ["query-block", "query-named-block-nodes"])
@pytest.mark.parametrize("times", [0, 2])
def test_an_image_has_one_node_and_one_device(mode: CacheMode, missing: str, times: int) -> None:
    monitor = PoolMonitor(CACHE_FLAGS[mode], "vmlab.run.vm")

    def another_number(command: str) -> Any:
        return monitor(command) * (times if command == missing else 1)

    (proof,) = Qemu("web", OWN, another_number).prove_data(mode, DISK)
    assert not proof.agrees


@pytest.mark.parametrize("driver", ["qcow2", "throttle"])
def test_what_lies_above_the_node_in_the_pool_has_no_say_and_the_device_has_the_write_cache(driver: str) -> None:
    monitor = PoolMonitor(CACHE_FLAGS["none"], "vmlab.run.vm")

    def another_above(command: str) -> Any:
        said = monitor(command)
        for node in said:
            if node.get("drv") == "raw":
                node.update(drv=driver, cache={"writeback": False, "direct": False, "no-flush": True})
        return said

    (proof,) = Qemu("web", OWN, another_above).prove_data("none", DISK)
    assert proof.agrees
    assert proof.expected == "rbd, none: o_direct=yes writeback=yes no_flush=no"
