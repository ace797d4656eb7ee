"""Controllers and weights under both versions of cgroups; no hierarchy is touched."""

from pathlib import Path

import pytest

from vmlab.hypervisor.isolation.cgroups import (
    Mount,
    available_controllers,
    hierarchies,
    lower_weight,
    remove_partition,
    set_emulator_shares,
    weights,
)
from vmlab.model.errors import HypervisorError

V1 = [
    Mount(Path("/c/cpu,cpuacct"), frozenset({"rw", "cpu", "cpuacct"}), 1),
    Mount(Path("/c/cpuset"), frozenset({"cpuset"}), 1),
]
V2 = [Mount(Path("/c"), frozenset({"cpuset", "cpu", "io", "memory", "pids", "cpuacct"}), 2)]
HYBRID = [*V1, Mount(Path("/c/unified"), frozenset({"cpuacct"}), 2)]


def test_both_versions_are_read_from_the_mounts(tmp_path: Path) -> None:
    two, one = mounted(tmp_path, "unified", "cgroup.controllers"), mounted(tmp_path, "cpu", "cgroup.procs")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"cgroup2 {two} cgroup2 rw,nosuid 0 0\ncgroup {one} cgroup rw,cpu 0 0\nproc /proc proc rw 0 0\n")
    unified, cpu = hierarchies(mounts)
    assert unified.version == 2
    assert sorted(unified.controllers) == ["cpu", "cpuacct", "cpuset", "io"]
    assert (cpu.version, cpu.root) == (1, one)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("cgroup2 {two} cgroup2 rw 0 0\ntmpfs {two} tmpfs rw 0 0", []),
        ("cgroup {one} cgroup rw,cpu 0 0\ntmpfs {one} tmpfs rw 0 0", []),
        ("tmpfs {two} tmpfs rw 0 0\ncgroup2 {two} cgroup2 rw 0 0", ["two"]),
        ("cgroup {one} cgroup rw,cpu 0 0\ntmpfs {two} tmpfs rw 0 0", ["one"]),
        # Something is mounted over a folder above it, which has a folder of that name or not.
        ("cgroup2 {empty} cgroup2 rw 0 0", []),
        ("cgroup2 {gone} cgroup2 rw 0 0", []),
        ("cgroup {empty} cgroup rw,cpu 0 0", []),
        # Version 2 was mounted over version 1, and has its files.
        ("cgroup {two} cgroup rw,cpu 0 0", []),
        ("tmpfs /a\u2028\u00a0\x85\rb tmpfs rw 0 0\ncgroup2 {two} cgroup2 rw 0 0", ["two"]),
    ],
)
def test_a_hierarchy_that_is_listed_and_hidden_is_not_there(tmp_path: Path, lines: str, found: list[str]) -> None:
    """Of mounts on one folder the last is seen; of one that something above hides, its files are missing.

    A mount point may hold what Python takes for the end of a line or of a word, and the kernel does not.
    """
    places = {
        "two": mounted(tmp_path, "unified", "cgroup.controllers", "cgroup.procs"),
        "one": mounted(tmp_path, "cpu", "cgroup.procs"),
        "empty": mounted(tmp_path, "empty"),
        "gone": tmp_path / "gone",
    }
    (tmp_path / "mounts").write_bytes(f"{lines.format(**places)}\n".encode())
    assert [one.root for one in hierarchies(tmp_path / "mounts")] == [places[name] for name in found]


def mounted(folder: Path, name: str, *files: str) -> Path:
    (folder / name).mkdir()
    for file in files:
        (folder / name / file).write_text("cpuset cpu io\n")
    return folder / name


def test_libvirt_is_told_of_cpuset_in_version_2_alone() -> None:
    assert available_controllers(V2) == ["cpu", "cpuacct", "cpuset"]
    assert available_controllers(V1) == available_controllers(HYBRID) == ["cpu", "cpuacct"]
    assert available_controllers([Mount(Path("/c"), frozenset({"memory", "cpuacct"}), 2)]) == ["cpuacct"]


@pytest.mark.parametrize("mounts", [V1, HYBRID, []])
def test_shares_stay_shares_in_version_1(mounts: list[Mount]) -> None:
    assert weights({"a": 262144, "b": None}, mounts) == {"a": 262144, "b": None}


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"a": 100, "b": 50}, {"a": 100, "b": 50}),
        ({"a": 2048, "b": None}, {"a": 2048, "b": 1024}),
        ({"a": None, "b": None}, {"a": 1024, "b": 1024}),
        ({"a": 20000, "b": 10000}, {"a": 10000, "b": 5000}),
        ({"a": 262144, "b": 2}, {"a": 10000, "b": 1}),
        ({}, {}),
    ],
)
def test_in_version_2_weights_keep_the_ratio_of_shares(shares: dict[str, int | None], expected: dict[str, int]) -> None:
    assert weights(shares, V2) == expected


def emulator(root: Path, mount: str, file: str, value: str) -> Path:
    """A guest's cgroup as libvirt makes it, in a tree of plain files."""
    group = root / mount / GUEST / "emulator"
    group.mkdir(parents=True)
    (group / file).write_text(value)
    return group / file


GUEST = "machine/qemu-embed-0123abcd-1-a.libvirt-qemu"
LISTED = f"5:memory:/{GUEST}\n4:cpuacct,cpu:/{GUEST}/emulator\n1:name=systemd:/emulator\n0::/emulator\n".encode()


@pytest.mark.parametrize("shares", [2, 1024, 102400])
def test_emulator_shares_are_shares_in_version_1(tmp_path: Path, shares: int) -> None:
    file = emulator(tmp_path, "cpu", "cpu.shares", "1024\n")
    mounts = [
        Mount(tmp_path / "memory", frozenset({"memory"}), 1),
        Mount(tmp_path / "cpu", frozenset({"cpuacct", "cpu"}), 1),
        Mount(tmp_path / "unified", frozenset({"cpuacct"}), 2),
    ]
    set_emulator_shares(shares, LISTED, mounts)
    assert file.read_text() == str(shares)


@pytest.mark.parametrize(("shares", "weight"), [(2, 1), (15, 1), (16, 2), (512, 50), (1024, 100), (102400, 10000)])
def test_in_version_2_emulator_shares_keep_their_ratio_to_the_virtual_cpus(
    tmp_path: Path, shares: int, weight: int
) -> None:
    file = emulator(tmp_path, "", "cpu.weight", "100\n")
    set_emulator_shares(shares, f"0::/{GUEST}/emulator\n".encode(), [Mount(tmp_path, V2[0].controllers, 2)])
    assert file.read_text() == str(weight)


@pytest.mark.parametrize(
    ("listed", "mounts"),
    [
        (f"4:cpu:/{GUEST}\n0::/{GUEST}/emulator\n", V1),
        (f"4:cpuset:/{GUEST}/emulator\n0::/{GUEST}\n", V2),
        (f"4:cpu:/{GUEST}/emulator\n0::/{GUEST}/emulator\n", []),
        ("", V1),
    ],
)
def test_threads_without_a_cgroup_of_their_own_have_no_weight(listed: str, mounts: list[Mount]) -> None:
    with pytest.raises(HypervisorError, match="emulator threads have no cgroup with the cpu controller"):
        set_emulator_shares(2, listed.encode(), mounts)


def test_a_weight_that_the_kernel_does_not_take_is_an_error(tmp_path: Path) -> None:
    file = emulator(tmp_path, "", "cpu.weight", "")
    file.unlink()
    file.symlink_to("/dev/null")
    with pytest.raises(HypervisorError, match=r"cpu\.weight is , and not 1$"):
        set_emulator_shares(2, f"0::/{GUEST}/emulator\n".encode(), [Mount(tmp_path, V2[0].controllers, 2)])


@pytest.mark.parametrize(
    ("file", "usual", "lowered"),
    [
        ("cpu.shares", "1024\n", "512"),
        ("cpu.weight", "100\n", "50"),
        ("io.weight", "default 100\n8:0 100\n", "default 50"),
    ],
)
def test_a_lab_s_own_partition_has_half_the_weight(tmp_path: Path, file: str, usual: str, lowered: str) -> None:
    partition = tmp_path / "machine"
    (partition / "qemu-embed-0123abcd-lab").mkdir(parents=True)
    (partition / file).write_text(usual)
    assert lower_weight(partition)
    assert (partition / file).read_text() == lowered
    assert not lower_weight(partition)


def test_a_weight_that_somebody_has_set_and_a_partition_with_others_stay(tmp_path: Path) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    for partition, weight in ((own, "300"), (shared, "100")):
        (partition / "qemu-embed-0123abcd-lab").mkdir(parents=True)
        (partition / "cpu.weight").write_text(weight)
    (shared / "qemu-1-db.libvirt-qemu").mkdir()
    assert not lower_weight(own)
    assert not lower_weight(shared)
    assert [(one / "cpu.weight").read_text() for one in (own, shared)] == ["300", "100"]


def test_a_partition_that_others_use_by_now_has_its_weight_back(tmp_path: Path) -> None:
    partition = tmp_path / "machine"
    (partition / "qemu-1-db.libvirt-qemu").mkdir(parents=True)
    (partition / "cpu.weight").write_text("50")
    (partition / "cpu.shares").write_text("300")
    assert not remove_partition(partition)
    assert (partition / "cpu.weight").read_text() == "100"
    assert (partition / "cpu.shares").read_text() == "300"


def test_version_2_gets_the_controller_that_weighs(tmp_path: Path) -> None:
    partition = tmp_path / "machine"
    partition.mkdir()
    enabled = tmp_path / "cgroup.subtree_control"
    enabled.write_text("memory pids\n")
    there = tmp_path / "cgroup.controllers"
    there.write_text("hugetlb cpuacct\n")
    lower_weight(partition)
    assert enabled.read_text() == "memory pids\n"
    there.write_text("memory cpu pids\n")
    lower_weight(partition)
    assert enabled.read_text() == "+cpu"
