"""Controllers and weights under both versions of cgroups; no hierarchy is touched."""

from pathlib import Path

import pytest

from vmlab.hypervisor.isolation.cgroups import Mount, available_controllers, hierarchies, weights

V1 = [
    Mount(Path("/c/cpu,cpuacct"), frozenset({"rw", "cpu", "cpuacct"}), 1),
    Mount(Path("/c/cpuset"), frozenset({"cpuset"}), 1),
]
V2 = [Mount(Path("/c"), frozenset({"cpuset", "cpu", "io", "memory", "pids", "cpuacct"}), 2)]
HYBRID = [*V1, Mount(Path("/c/unified"), frozenset({"cpuacct"}), 2)]


def test_both_versions_are_read_from_the_mounts(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"cgroup2 {tmp_path} cgroup2 rw,nosuid 0 0\ncgroup /c/cpu cgroup rw,cpu 0 0\nproc /proc proc rw 0 0\n"
    )
    unified, cpu = hierarchies(mounts)
    assert unified.version == 2
    assert sorted(unified.controllers) == ["cpu", "cpuacct", "cpuset", "io"]
    assert (cpu.version, cpu.root) == (1, Path("/c/cpu"))


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
