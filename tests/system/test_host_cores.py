"""Which CPUs a number of them are, on machines with one and with two hardware threads a core."""

from pathlib import Path

import pytest

from vmlab.system.host_size import Cores, choose_cpus, lack_of_cpus, last_cpus, read_cores

SINGLE: Cores = ((0,), (1,))
DOUBLE: Cores = ((0, 4), (1, 5), (2, 6), (3, 7))
"""As Linux counts a processor of four cores: the second threads come last."""


def test_the_cores_are_those_of_the_cpus_that_may_be_used(tmp_path: Path) -> None:
    for cpu in range(4):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n")
    assert read_cores(tmp_path, range(4)) == ((0, 2), (1, 3))
    assert read_cores(tmp_path, [1, 2, 3]) == ((1, 3), (2,))


def test_without_a_topology_each_cpu_is_a_core(tmp_path: Path) -> None:
    assert read_cores(tmp_path, [0, 1]) == SINGLE


@pytest.mark.parametrize(
    ("cores", "count", "smt", "chosen"),
    [
        (SINGLE, 1, None, [1]),
        (SINGLE, 2, False, [0, 1]),
        (DOUBLE, 4, False, [0, 1, 2, 3]),
        (DOUBLE, 2, False, [2, 3]),
        (DOUBLE, 8, True, [0, 1, 2, 3, 4, 5, 6, 7]),
        (DOUBLE, 4, True, [2, 3, 6, 7]),
        (DOUBLE, 3, None, [5, 6, 7]),
    ],
)
def test_threads_of_cores(cores: Cores, count: int, smt: bool | None, chosen: list[int]) -> None:
    assert choose_cpus(cores, count, smt=smt) == chosen


@pytest.mark.parametrize(
    ("cores", "count", "smt", "reason"),
    [
        (SINGLE, 3, None, "it needs 3 CPUs, and this host has 2"),
        (SINGLE, 4, False, "it needs 4 cores, and this host has 2"),
        (SINGLE, 8, True, "it needs 4 cores of two hardware threads each, and this host has none"),
        (DOUBLE, 10, True, "it needs 5 cores of two hardware threads each, and this host has 4"),
        (DOUBLE, 5, False, "it needs 5 cores, and this host has 4"),
        (DOUBLE, 3, True, "3 CPUs are no whole cores of two hardware threads each"),
    ],
)
def test_what_a_host_lacks_is_told(cores: Cores, count: int, smt: bool | None, reason: str) -> None:
    assert lack_of_cpus(cores, count, smt=smt) == reason
    with pytest.raises(ValueError, match=r"cores|CPUs"):
        choose_cpus(cores, count, smt=smt)


def test_cpus_that_are_taken_least_often_come_first() -> None:
    assert choose_cpus(SINGLE, 1, smt=None, taken=[1]) == [0]
    assert choose_cpus(SINGLE, 1, smt=None, taken=[0, 1, 1]) == [0]
    assert choose_cpus(DOUBLE, 2, smt=True, taken=[7]) == [2, 6]


def test_an_ordered_host_has_the_last_cpus() -> None:
    assert last_cpus(DOUBLE, None) == DOUBLE
    assert last_cpus(DOUBLE, 2) == ((6,), (7,))
