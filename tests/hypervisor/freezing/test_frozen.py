"""A saved state is compared with the machine that it should load into, before anything starts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.frozen_guest import (
    host_cpu_flags,
    keep_disk,
    layout,
    require_fitting,
    write_machine,
)
from vmlab.model.errors import SnapshotError
from vmlab.model.names import DISK, FROZEN_FILES, MACHINE

FACTS: dict[str, Any] = {
    "qemu": "7.2.22",
    "libvirt": "9.0.0",
    "accelerator": "tcg",
    "machine_type": "pc-q35-7.2",
    "cpu_model": "maximum",
    "host_cpu_flags": None,
}


@pytest.fixture
def image(tmp_path: Path) -> BootImage:
    for name in ("root.raw", "vmlinuz", "initrd.img"):
        (tmp_path / name).write_bytes(name.encode())
    return BootImage(tmp_path / "root.raw", tmp_path / "vmlinuz", tmp_path / "initrd.img", "root=/dev/vda")


@pytest.fixture
def saved(tmp_path: Path, image: BootImage) -> Path:
    folder = tmp_path / "web-123"
    folder.mkdir()
    for name in FROZEN_FILES:
        (folder / name).touch()
    write_machine(folder, layout(spec(), image, FACTS), "9.0.0", "<domain/>")
    return folder


def test_the_same_machine_fits(saved: Path, image: BootImage) -> None:
    other = replace(spec("other-1", "writeback", shares=100), mac="52:54:00:00:00:99")
    require_fitting(saved, layout(other, image, FACTS))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"vcpus": 2}, "vcpus"),
        ({"memory_bytes": 2**30}, "memory_bytes"),
        ({"disk_bytes": 2**30}, "disk_bytes"),
        ({"queues": 4}, "queues"),
        ({"cache": "writethrough"}, "write_cache"),
        ({"cache": "directsync"}, "write_cache"),
    ],
)
def test_another_guest_does_not_fit(saved: Path, image: BootImage, change: dict[str, Any], named: str) -> None:
    with pytest.raises(SnapshotError, match=f"web-123 was saved from another machine: {named} differ"):
        require_fitting(
            saved, layout(replace(spec(), resources=spec().resources.model_copy(update=change)), image, FACTS)
        )


@pytest.mark.parametrize("fact", FACTS)
def test_another_hypervisor_does_not_fit(saved: Path, image: BootImage, fact: str) -> None:
    with pytest.raises(SnapshotError, match=f": {fact} differ"):
        require_fitting(saved, layout(spec(), image, {**FACTS, fact: "other"}))


def test_another_kernel_does_not_fit(saved: Path, image: BootImage) -> None:
    assert image.kernel is not None
    image.kernel.write_bytes(b"another kernel")
    with pytest.raises(SnapshotError, match="kernel differ"):
        require_fitting(saved, layout(spec(), image, FACTS))


def test_a_guests_own_image_is_what_counts(saved: Path, image: BootImage) -> None:
    own = replace(image, disk=image.disk.with_name("other.raw"))
    with pytest.raises(SnapshotError, match=": base differ"):
        require_fitting(saved, layout(replace(spec(), image=own), image, FACTS))
    require_fitting(saved, layout(replace(spec(), image=image), own, FACTS))


@pytest.mark.parametrize("name", FROZEN_FILES)
def test_a_missing_file_is_named(saved: Path, image: BootImage, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(SnapshotError, match=f"{name} missing"):
        require_fitting(saved, layout(spec(), image, FACTS))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"layout": 1}', "{}"])
def test_a_torn_description_is_damage(saved: Path, image: BootImage, text: str) -> None:
    (saved / MACHINE).write_text(text)
    with pytest.raises(SnapshotError, match=r"machine\.json is not one"):
        require_fitting(saved, layout(spec(), image, FACTS))


def test_the_description_keeps_the_whole_domain_for_people(saved: Path) -> None:
    assert json.loads((saved / MACHINE).read_text())["domain"] == "<domain/>"
    assert len(host_cpu_flags()) == 12


def test_a_disk_is_kept_across_file_systems(tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system alone")
    overlay = shared / f"vmlab-{tmp_path.name}.qcow2"
    overlay.write_bytes(b"disk")
    keep_disk(overlay, tmp_path)
    assert (tmp_path / DISK).read_bytes() == b"disk" and not overlay.exists()
