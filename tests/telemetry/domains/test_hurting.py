"""Which guest hurts, and what is at its limit, from samples written by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from vmlab.cli.top_view import domain_lines
from vmlab.model.domain import Domain, DomainDisk
from vmlab.model.sample import Sample, SampleNames
from vmlab.system.text_width import width_of
from vmlab.telemetry.domains.hurting import SPAN, DomainState, Recent, host_limits, ranked

HOST = {"cpu_count": 4.0, "cpu_idle_percent": 60.0, "cpu_iowait_percent": 0.0, "memory_total_bytes": 8e9}
HOST |= {"pressure_memory_some_percent": 0.0, "disk_util_percent[sda]": 20.0, "disk_await_ms[sda]": 3.0}
HOST |= {"disk_read_bytes_per_second[sda]": 1e6, "disk_write_bytes_per_second[sda]": 9e6}

DOMAINS = (
    Domain("db", "libvirt", vcpus=2, memory_bytes=10**9, disks=(DomainDisk("vda", "/db", "raw", "none", below="sda"),)),
    Domain("web", "process", vcpus=1, memory_bytes=10**9, disks=(DomainDisk("drive0", "/web", below="sda"),)),
)


def states(more: dict[str, float]) -> dict[str, DomainState]:
    """By name, in their order."""
    return {state.domain.name: state for state in ranked(recent(more).get, DOMAINS)}


def recent(more: dict[str, float]) -> Recent:
    values = HOST | more
    return Recent([Sample(0.0, 1.0, 1.0, 0.0, SampleNames.of(tuple(values)), tuple(values.values()))])


def test_the_one_that_takes_most_of_the_cpus_is_first() -> None:
    found = states({"domain_cpu_percent[db]": 40.0, "domain_cpu_percent[web]": 90.0})
    assert list(found) == ["web", "db"]
    take = found["web"].take
    assert take is not None
    assert (take.words, take.is_short) == ("CPU 22 %", False)
    assert found["web"].limits == ()


def test_a_disk_at_its_limit_comes_before_more_cpu() -> None:
    moved = {"domain_host_read_bytes_per_second[db]": 0.0, "domain_host_write_bytes_per_second[db]": 8e6}
    found = states({"disk_util_percent[sda]": 98.0, "domain_cpu_percent[web]": 100.0, **moved})
    assert list(found) == ["db", "web"]
    # 8 of the disk's 10 MB/s, over the time in which it was busy.
    assert found["db"].take is not None
    assert found["db"].take.percent == pytest.approx(98 * 0.8)
    assert [limit.words for limit in found["db"].limits] == ["disk sda 98 % busy, 78 % by it"]
    assert [limit.words for limit in found["web"].limits] == ["its 1 vCPU 100 % busy"]


def test_guests_that_write_into_the_page_cache_share_what_they_moved() -> None:
    moved = {f"domain_host_read_bytes_per_second[{name}]": 0.0 for name in ("db", "web")}
    moved |= {"domain_host_write_bytes_per_second[db]": 30e6, "domain_host_write_bytes_per_second[web]": 10e6}
    found = states({"disk_util_percent[sda]": 100.0, **moved})
    assert [round(state.take.percent) for state in found.values() if state.take] == [75, 25]


def test_a_domain_without_process_figures_is_judged_by_its_guests_bytes() -> None:
    moved = {"domain_disk_read_bytes_per_second[db/vda]": 5e6, "domain_disk_write_bytes_per_second[db/vda]": 0.0}
    take = states({"disk_util_percent[sda]": 50.0, **moved})["db"].take
    assert take is not None and take.percent == pytest.approx(25.0)


def test_what_is_at_its_limit_inside_a_guest() -> None:
    inside = {"domain_vcpu_delay_percent[db]": 60.0, "domain_memory_usable_bytes[db]": 2e7}
    inside |= {"domain_disk_queue_depth[db/vda]": 3.25, "domain_disk_await_ms[db/vda]": 41.0}
    inside |= {"domain_memory_swapped_bytes[db]": 104857600.0, "domain_cpu_percent[db]": 10.0}
    assert [limit.words for limit in states(inside)["db"].limits] == [
        "waits 30 % of the time for a CPU",
        "vda has 3.2 requests waiting, await 41.0 ms",
        "2 % of its memory usable",
        "100 MiB of it swapped out",
    ]


def test_memory_counts_where_the_host_lacks_it() -> None:
    resident = {"domain_memory_resident_bytes[db]": 4e9}
    assert states(resident)["db"].take is None
    found = states({"pressure_memory_some_percent": 30.0, **resident})["db"]
    assert found.take is not None and found.take.words == "memory 50 %"
    assert [limit.words for limit in found.limits] == ["host lacks memory, 50 % is its"]


def test_what_of_the_host_is_at_its_limit() -> None:
    busy = {"cpu_idle_percent": 2.0, "disk_util_percent[sda]": 99.0, "pressure_memory_some_percent": 12.0}
    assert host_limits(recent(busy).get, DOMAINS) == (
        "CPUs 98 % busy",
        "disk sda 99 % busy, await 3.0 ms",
        "memory: tasks wait for it 12 % of the time",
    )
    assert host_limits(recent({}).get, DOMAINS) == ()


def test_the_newest_samples_are_looked_at_together() -> None:
    names = SampleNames.of(("cpu_count",))
    of = Recent(
        Sample(0.0, n, 1.0, 0.0, names, (value,)) for n, value in enumerate([99.0, math.nan, 1.0, 2.0, 3.0, 6.0])
    )
    assert of.get("cpu_count") == pytest.approx(12 / (SPAN - 1))
    assert math.isnan(of.get("nothing"))


def test_top_says_who_hurts_and_each_disk_s_cache_mode() -> None:
    moved = {"domain_host_read_bytes_per_second[web]": 0.0, "domain_host_write_bytes_per_second[web]": 2.5e6}
    found = list(states({"disk_util_percent[sda]": 98.0, "domain_cpu_percent[db]": 8.0, **moved}).values())
    text = "\n".join(domain_lines(found, 2.0, ("disk sda 98 % busy",)))
    assert text.startswith("At limit  disk sda 98 % busy\nDomains ")
    assert "at limit: disk sda 98 % busy, 24 % by it" in text
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("  vda")] == [["vda", "none"]]
    assert " 2.50 " in next(line for line in text.splitlines() if line.startswith("  drive0"))
    assert text.endswith("2 more of a lab, which are not shown here")
    assert domain_lines([], 0.0, ()) == []


@pytest.mark.parametrize("end", ["\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\x1b[2K", "\u202e"])
def test_no_name_ends_or_rewrites_its_row(end: str) -> None:
    """A name of a guest, a disk or a file is another's text: in rows it is shown as it is, with what a terminal or a
    reader of lines would obey as an escape.
    """
    forged = f"web{end}Domains forged"
    disk = DomainDisk(forged, f"/srv/{forged}", forged, forged, below="sda")
    domain = Domain(forged, "libvirt", vcpus=1, disks=(disk,))
    (state,) = ranked(recent({f"domain_disk_queue_depth[{forged}/{forged}]": 3.0}).get, [domain])
    lines = domain_lines([state], 0.0, ())
    assert len(lines) == 5
    assert lines == [line for text in lines for line in text.splitlines()]
    assert all(line.isprintable() for line in lines)
    assert sum(line.startswith("Domains") for line in lines) == 1


def test_figures_of_domains_with_wide_names_are_aligned() -> None:
    named = [replace(DOMAINS[0], name=name) for name in ("db", "数据库", "cafe\u0301", "数据库服务器数据库服务器")]
    found = ranked(recent({f"domain_cpu_percent[{one.name}]": 12.3 for one in named}).get, named)
    rows = [line for line in domain_lines(found, 0.0, ()) if "12.3" in line]
    assert len(rows) == 4
    assert {width_of(row.partition("12.3")[0]) for row in rows} == {21}


def test_a_rate_that_stands_counts_for_no_time_and_the_next_one_for_all_that_passed() -> None:
    name, length = "domain_disk_queue_depth[db/vda]", "domain_read_length_seconds[db]"
    layout = SampleNames.of((name, length))

    def of(*ticks: tuple[float, float]) -> float:
        taken = [Sample(0.0, float(end), 1.0, 0.0, layout, values) for end, values in enumerate(ticks)]
        return Recent(taken).get(name)

    assert of((10.0, 1.0), (10.0, 0.0), (40.0, 2.0)) == 30.0
    assert of((10.0, 0.0), (20.0, 0.0)) == 20.0
