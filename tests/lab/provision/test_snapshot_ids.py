"""A guest's attributes, changed one at a time on the whole way from the scenario to the snapshot that fits it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import vmlab
from tests.fakes.hypervisor import FakeHypervisor
from vmlab.guests.added_guest import log_in
from vmlab.guests.image.added import AddedImage
from vmlab.guests.snapshots import SnapshotRecipe
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.frozen_guest import layout
from vmlab.lab.provision.added_guests import AddedGuests
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.snapshot_provider import preparing_code
from vmlab.lab.provision.timing import USUAL
from vmlab.model.run import CACHE_MODES
from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides

HOST = HostFacts(2**44, 2**44, 2**44, 2, "tcg")
DRAWS: dict[str, Callable[[random.Random], str]] = {
    "vcpus": lambda draw: draw.choice(["host", *map(str, range(64, 257))]),
    "memory": lambda draw: f"{2 * draw.randint(32, 2**13)} MiB",
    "disk": lambda draw: f"{draw.randint(1, 2**10)} GiB",
    "queues": lambda draw: f"{draw.randint(1, 64)}",
    "cpu_shares": lambda draw: f"{draw.randint(2, 2**18)}",
    "emulator_shares": lambda draw: f"{draw.randint(2, 102400)}",
    "cpu_quota": lambda draw: f"{draw.randint(10, 100)}",
    "cpu": lambda draw: draw.choice(["max", "host", "EPYC -svm", "EPYC"]),
    "pin": lambda draw: draw.choice(["none", "spread", "packed", "0-1", "3"]),
    "emulator_pin": lambda draw: draw.choice(["none", "0", "0-1"]),
    "huge_pages": lambda draw: draw.choice(["transparent", "2 MiB"]),
    "ksm": lambda draw: draw.choice(["null", "false"]),
    "numa": lambda draw: f"{draw.randint(0, 1023)}",
    "memory_lock": lambda draw: draw.choice(["true", "false"]),
    "machine": lambda draw: draw.choice(["q35", "pc"]),
    "firmware": lambda draw: draw.choice(["bios", "uefi"]),
    "cache": lambda draw: draw.choice(CACHE_MODES),
    "io": lambda draw: draw.choice(["threads", "io_uring"]),
    "iothread": lambda draw: draw.choice(["true", "false", "both"]),
    "detect_zeroes": lambda draw: draw.choice(["off", "on", "unmap"]),
    "limit_iops": lambda draw: f"{draw.randint(1, 10**6)}",
    "limit_bandwidth": lambda draw: f"{draw.randint(1, 10**2)} MB/s",
    "limit_iops_burst": lambda draw: f"{draw.randint(10**6, 10**9)}",
    "limit_bandwidth_burst": lambda draw: f"{draw.randint(10**2, 10**4)} MB/s",
    "limit_burst_length": lambda draw: f"{draw.randint(1, 600)} s",
    "boot": lambda draw: draw.choice(["lab", "normal", "rescue"]),
    "image": lambda draw: draw.choice(["debian", "mine", "other"]),
    "packages": lambda draw: draw.choice(["[]", "redis-server", "[redis-server, redis-tools]"]),
    "data": lambda draw: f"{draw.randint(64, 2**14)} MiB",
    "data_queues": lambda draw: f"{draw.randint(1, 64)}",
    "allocation": lambda draw: draw.choice(["thin", "full"]),
    "backing": lambda draw: draw.choice(["file", "block", "xfs", "folder:/srv", "rbd:one", "rbd:other"]),
    "read_ahead": lambda draw: f"{4 * draw.randint(0, 2**18)} KiB",
    "data_cache": lambda draw: draw.choice(CACHE_MODES),
    "data_io": lambda draw: draw.choice(["threads", "io_uring"]),
    "data_iothread": lambda draw: draw.choice(["true", "false", "both"]),
    "data_bus": lambda draw: draw.choice(["virtio", "scsi"]),
    "data_packed": lambda draw: draw.choice(["true", "false"]),
    "data_format": lambda draw: draw.choice(["raw", "qcow2"]),
    "data_cluster": lambda draw: f"{2 ** draw.randint(4, 11)} KiB",
    "data_preallocation": lambda draw: draw.choice(["off", "metadata", "falloc", "full"]),
    "data_table_cache": lambda draw: f"{draw.randint(2**14, 2**20)} KiB",
    "data_extended_l2": lambda draw: draw.choice(["true", "false"]),
    "data_discard": lambda draw: draw.choice(["ignore", "unmap"]),
    "data_detect_zeroes": lambda draw: draw.choice(["off", "on", "unmap"]),
    "data_limit_iops": lambda draw: f"{draw.randint(1, 10**6)}",
    "data_limit_bandwidth": lambda draw: f"{draw.randint(1, 10**2)} MB/s",
    "data_limit_iops_burst": lambda draw: f"{draw.randint(10**6, 10**9)}",
    "data_limit_bandwidth_burst": lambda draw: f"{draw.randint(10**2, 10**4)} MB/s",
    "data_limit_burst_length": lambda draw: f"{draw.randint(1, 600)} s",
    "network": lambda draw: draw.choice(["plain", "vxlan", "nat"]),
    "nic_queues": lambda draw: f"{draw.randint(1, 64)}",
    "vhost": lambda draw: draw.choice(["true", "false"]),
    "mtu": lambda draw: f"{draw.randint(1280, 9000)}",
    "bandwidth": lambda draw: f"{draw.randint(1, 10**4)} Mbit/s",
    "libvirt": lambda draw: f"{{memtune/hard_limit: {draw.randint(1, 10**6)}}}",
    "smt": lambda draw: draw.choice(["true", "false"]),
}
"""Values of each attribute as a scenario says them; two that differ mean different things."""
OF_DATA_DISK = {"allocation", "backing", "read_ahead", *(name for name in DRAWS if name.startswith("data"))}
OF_BACKEND = {"io", "iothread", "detect_zeroes", *(name for name in DRAWS if name.startswith("limit_"))}
OF_CARD = {"network", "nic_queues", "vhost", "mtu", "bandwidth"}
OF_CPU = {"cpu_shares", "emulator_shares", "cpu_quota", "pin", "emulator_pin", "smt"}
OF_MEMORY = {"huge_pages", "ksm", "numa", "memory_lock"}
UNSEEN = {*OF_CPU, *OF_MEMORY, *OF_BACKEND, *OF_CARD, *OF_DATA_DISK}
"""What a guest that is saved knows nothing of; data disk and network card are plugged in afterwards."""
RAW = {
    "data_format": "raw",
    "data_cluster": "null",
    "data_preallocation": "off",
    "data_table_cache": "null",
    "data_extended_l2": "false",
}
"""A data disk without anything that qcow2 alone has."""
WITHOUT_CACHE = {"writethrough", "directsync"}
"""Modes in which the guest sees a disk without a write cache; it cannot tell one of the others from another."""


async def snapshot_id(folder: Path, attributes: dict[str, str]) -> str:
    """The name of the snapshot of a guest with these attributes."""
    written = ", ".join(f"{name}: {value}" for name, value in attributes.items())
    guests = f"guests: {{vm: {{{written}}}}}"
    text = (
        f"name: one\n{guests}\nworkloads: {{primes: {{kind: cpu, on: vm, threads: 1}}}}\nallow: {{unsafe_cache: true}}"
    )
    (cell,) = make_plan(read(Path("x.yaml"), text), Overrides(), HOST).cells
    for name in ("vmlinuz", "initrd"):
        (folder / name).touch()
    image = BootImage(folder / "root.raw", folder / "vmlinuz", folder / "initrd", "")
    hypervisor = FakeHypervisor()
    key, disk = folder / "key", folder / "disk.raw"
    added = {
        name: AddedImage(name, name, folder, disk, None, None, "", "root", key, 2**20, {}) for name in ("mine", "other")
    }
    guests_of_added = AddedGuests(cell, added, log_in, USUAL)
    packages = [guest.resources.packages for guest in cell.guests]
    layers = {one: replace(image, disk=folder / "-".join(one) / "root.raw") for one in packages}
    guests_of = GuestSet(
        "run", cell, hypervisor, image, lambda _guest, _state: None, added=guests_of_added, layers=layers
    )
    (spec,) = guests_of.specs
    machine = layout(spec, image, await hypervisor.facts())
    return SnapshotRecipe(image="1" * 64, machine=machine, roles=(), preparation={}).id


# A guest on the host has no snapshot.
@pytest.mark.parametrize("changed", [name for name in GUEST_ATTRIBUTES if name != "on"])
async def test_a_snapshot_fits_guests_that_see_the_same(tmp_path: Path, changed: str) -> None:
    draw = random.Random(changed)
    for _ in range(20):
        one = {name: another(draw) for name, another in DRAWS.items()}
        # Ways to boot, firmware, packages and elastic addresses are of guests of vmlab's own image.
        of_labs = {"boot": "lab", "firmware": "bios", "packages": "[]", "network": "plain"}
        one |= of_labs if changed == "image" else {"image": "debian"}
        # A qcow2 file is allocated otherwise, an image in a pool by Ceph, which the host neither reads nor maps.
        one |= RAW if changed in ("allocation", "backing", "data_format") else {"data_format": "qcow2"}
        one |= {} if changed == "allocation" else {"allocation": "thin"}
        one |= {"data_io": "null"} if changed == "backing" else {"backing": "file"}
        one |= {"data_bus": "virtio"} if changed != "data_bus" else {"data_packed": "false"}
        one |= {"data_detect_zeroes": "on"} if changed in ("data_discard", "allocation") else {"data_discard": "unmap"}
        one |= {"data_discard": "null"} if changed == "backing" else {}
        one |= {"mtu": "null"} if changed == "network" else {"network": "plain"}
        one |= {"huge_pages": "transparent"} if changed == "numa" else {"numa": "null"}
        other = dict(one)
        while other == one:
            other[changed] = DRAWS[changed](draw)
        same = await snapshot_id(tmp_path, one) == await snapshot_id(tmp_path, other)
        seen_alike = changed == "cache" and (one["cache"] in WITHOUT_CACHE) is (other["cache"] in WITHOUT_CACHE)
        assert same is (changed in UNSEEN or seen_alike), (one, other)


def test_the_digest_of_the_code_has_what_prepares_guests_and_no_parser() -> None:
    root = Path(vmlab.__file__).parent
    wanted = {
        path.relative_to(root)
        for folder in ("workloads", "guests/payload")
        for path in (root / folder).rglob("*.py")
        if "reports" not in path.parts
    }
    hashed = {Path(path).relative_to("vmlab") for path, _ in preparing_code()}
    assert hashed == wanted
    assert Path("workloads/kinds/fio.py") in hashed and not [path for path in hashed if path.stem.endswith("_report")]
