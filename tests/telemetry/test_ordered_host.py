"""Figures of a limited host, from files of cgroups as the kernel writes them, in both versions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from vmlab.telemetry.host.ordered_host import GroupFiles, OrderedHost

MIB = 2**20
HOST_CPUS, HOST_MEMORY = 8, 1024 * MIB


def ordered_group(folder: Path, version: int = 2, *, limit: str = "", cpus: int | None = 2) -> GroupFiles:
    """A group that has used nothing."""
    folder.mkdir(exist_ok=True)
    grown(folder, version, limit=limit or str(256 * MIB))
    return GroupFiles(folder, version, folder, cpus)


def grown(
    folder: Path,
    version: int,
    *,
    usage: int = 0,
    cached: int = 0,
    swapped: int = 0,
    reread: tuple[int, int] = (0, 0),
    reclaimed: int = 0,
    cpu_seconds: float = 0.0,
    limit: str | None = None,
) -> None:
    """What the group has used by now; pages for `reread` and `reclaimed`, else bytes."""
    usage_name, limit_name = (
        ("memory.usage_in_bytes", "memory.limit_in_bytes") if version == 1 else ("memory.current", "memory.max")
    )
    (folder / usage_name).write_text(f"{usage}\n")
    if limit is not None:
        (folder / limit_name).write_text(f"{limit}\n")
    anon, file = reread
    if version == 1:
        (folder / "memory.stat").write_text(
            f"cache 1\nswap 2\ntotal_cache {cached}\ntotal_rss 5\ntotal_swap {swapped}\ntotal_swapcached 0\n"
            f"total_workingset_refault_anon {anon}\ntotal_workingset_refault_file {file}\ntotal_pgpgin 9\n"
        )
        (folder / "cpuacct.usage").write_text(f"{round(cpu_seconds * 1e9)}\n")
    else:
        (folder / "memory.stat").write_text(
            f"anon 5\nfile {cached}\nkernel 3\nswapcached 0\nworkingset_refault_anon {anon}\n"
            f"workingset_refault_file {file}\npgscan 9\npgsteal {reclaimed}\n"
        )
        (folder / "memory.swap.current").write_text(f"{swapped}\n")
        (folder / "cpu.stat").write_text(f"usage_usec {round(cpu_seconds * 1e6)}\nuser_usec 1\n")


@pytest.mark.parametrize("version", [1, 2])
def test_memory_is_used_cached_and_free_up_to_the_limit(tmp_path: Path, version: int) -> None:
    group = OrderedHost(ordered_group(tmp_path / "group", version), HOST_CPUS, HOST_MEMORY)
    grown(tmp_path / "group", version, usage=200 * MIB, cached=150 * MIB, swapped=7 * MIB)
    found = dict(zip(group.names, group.read(0.0, 1.0), strict=True))
    assert found["ordered_memory_limit_bytes"] == 256 * MIB
    assert found["ordered_memory_used_bytes"] == 50 * MIB
    assert found["ordered_memory_cached_bytes"] == 150 * MIB
    assert found["ordered_memory_free_bytes"] == 56 * MIB
    assert found["ordered_memory_swapped_bytes"] == 7 * MIB
    assert math.isnan(found["ordered_cpu_percent"])


@pytest.mark.parametrize(("version", "reclaimed"), [(1, math.nan), (2, 2 * MIB)])
def test_what_was_reclaimed_and_read_again_is_a_rate_and_cpu_a_share_of_the_ordered_cpus(
    tmp_path: Path, version: int, reclaimed: float
) -> None:
    folder = tmp_path / "group"
    group = OrderedHost(ordered_group(folder, version), HOST_CPUS, HOST_MEMORY)
    group.read(0.0, 1.0)
    grown(folder, version, reread=(256, 768), reclaimed=1024, cpu_seconds=3.0)
    found = dict(zip(group.names, group.read(2.0, 2.0), strict=True))
    assert found["ordered_cpu_percent"] == pytest.approx(75.0)
    assert found["ordered_memory_reread_bytes_per_second"] == 2 * MIB
    assert found["ordered_memory_reclaimed_bytes_per_second"] == pytest.approx(reclaimed, nan_ok=True)


@pytest.mark.parametrize(("version", "limit"), [(1, "9223372036854771712"), (2, "max")])
def test_what_is_not_ordered_is_the_hosts(tmp_path: Path, version: int, limit: str) -> None:
    folder = tmp_path / "group"
    group = OrderedHost(ordered_group(folder, version, limit=limit, cpus=None), HOST_CPUS, HOST_MEMORY)
    assert group.read(0.0, 1.0)[0] == HOST_MEMORY
    grown(folder, version, cpu_seconds=4.0)
    assert group.read(1.0, 1.0)[1] == pytest.approx(50.0)


def test_counters_of_a_group_that_is_made_anew_or_lacks_them_are_unknown(tmp_path: Path) -> None:
    """A group that was made anew counts from 0, none uses more than its CPUs, and what no line says is unknown."""
    folder = tmp_path / "group"
    group = OrderedHost(ordered_group(folder), HOST_CPUS, HOST_MEMORY)
    for cpu_seconds in (9.0, 1.0, 900.0):
        grown(folder, 2, reread=(1, 1), reclaimed=1024, cpu_seconds=cpu_seconds)
        found = dict(zip(group.names, group.read(1.0, 1.0), strict=True))
        assert math.isnan(found["ordered_cpu_percent"])
    (folder / "memory.stat").write_text("file 4096\npgsteal 2048\n")
    group.read(1.0, 1.0)
    (folder / "memory.stat").write_text("file 4096\npgsteal 2304\n")
    found = dict(zip(group.names, group.read(1.0, 1.0), strict=True))
    assert found["ordered_memory_reclaimed_bytes_per_second"] == MIB
    assert math.isnan(found["ordered_memory_reread_bytes_per_second"])
