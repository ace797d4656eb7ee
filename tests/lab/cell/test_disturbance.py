"""What the host did beside a cell: each rule at its limit and just over it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from vmlab.lab.cell import disturbance
from vmlab.lab.cell.disturbance import Disturbance, Finding, until_steady
from vmlab.lab.run.host_facts import turbo, unfixed_speed
from vmlab.model.results import NeighbourUse
from vmlab.model.scenarios.scenario import Allow, Limits
from vmlab.telemetry.cpu_speed import SPEED
from vmlab.telemetry.host_counters import Between
from vmlab.telemetry.source import Roots

LIMITS = Limits()
QUIET = Disturbance(0.0, 0.0, 0.0, 0.0, 0.0)
RULES = {
    "other_percent": (LIMITS.host_other_percent, "the host's other work took"),
    "steal_percent": (LIMITS.host_steal_percent, "steal: the hypervisor that this host runs on took"),
    "pressure_percent": (LIMITS.memory_pressure_percent, "tasks on the host waited for memory for 10 % of the time"),
    "swapped_bytes": (LIMITS.swapped_bytes, "the host swapped 1 MiB while the workloads ran; the limit is 1 MiB"),
    "lateness": (LIMITS.tick_lateness, "samples of the host were taken 500 ms late; the limit is 500 ms"),
}


def unmoved(_metric: str, _since: float, _until: float) -> tuple[float, float]:
    return (100.0, 100.0)


def slow(percent: float, steal: float = 0.0) -> Disturbance:
    return replace(QUIET, speed_percent=percent, speeds=(50.0, 100.0), steal_percent=steal)


def test_cpus_below_their_best_speed_are_told_and_below_the_limit_break() -> None:
    assert findings(slow(90.0)) == []
    words = "% of their best speed on average, between 50 and 100 %"
    (told,) = findings(slow(62.0))
    assert not told.breaks
    assert told.text == (
        f"the CPUs ran at 62 {words}: work on the other hardware thread of a core, frequency or temperature; "
        "steal was 0 %"
    )
    assert not findings(slow(30.0))[0].breaks
    assert findings(slow(29.9)) == [Finding(f"the CPUs ran at 30 {words}; the limit is 30 %", breaks=True)]


def test_a_range_that_is_not_known_is_left_out() -> None:
    (told,) = findings(replace(slow(29.9), speeds=(math.nan, math.nan)))
    assert told.text == "the CPUs ran at 30 % of their best speed on average; the limit is 30 %"


async def test_a_cell_waits_until_every_cpu_was_fast_for_three_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    lowest, spans = [50.0, 89.0, 90.0], []

    def extremes(metric: str, since: float, until: float) -> tuple[float, float]:
        assert metric == SPEED
        spans.append(until - since)
        return lowest.pop(0), 100.0

    monkeypatch.setattr(disturbance, "_LOOK_SECONDS", 0.0)
    assert await until_steady(extremes, 60.0) == 90.0
    assert spans == [3.0, 3.0, 3.0] and not lowest


async def test_it_waits_for_no_longer_than_asked_and_not_where_the_speed_is_unknown() -> None:
    assert await until_steady(lambda *_: (50.0, 100.0), 0.01) == 50.0
    assert math.isnan(await until_steady(lambda *_: (math.nan, math.nan), 3600.0))


def findings(seen: Disturbance, allow: Allow | None = None, seconds: float = 60.0) -> list[Finding]:
    return list(seen.findings(LIMITS, allow or Allow(), seconds))


def changed(name: str, value: float) -> Disturbance:
    """A quiet host but for one figure."""
    figures: dict[str, Any] = {**dict.fromkeys(RULES, 0.0), name: value}
    return Disturbance(**figures)


@pytest.mark.parametrize("name", RULES)
def test_at_its_limit_a_rule_holds_and_above_it_is_broken(name: str) -> None:
    limit, words = RULES[name]
    assert not any(finding.breaks for finding in findings(changed(name, float(limit))))
    (finding,) = findings(changed(name, math.nextafter(float(limit), math.inf)))
    assert finding.breaks
    assert finding.text.startswith(words)


def test_a_quiet_host_has_nothing_to_tell_and_one_that_is_not_known_only_that() -> None:
    assert findings(QUIET) == []
    (finding,) = findings(Disturbance())
    assert finding == Finding("no host metrics were recorded while the workloads ran", breaks=False)
    assert findings(Disturbance(), seconds=1.0) == []


def test_a_processor_that_became_hot_and_a_quota_that_held_the_lab_back_break() -> None:
    hot, held = (replace(QUIET, between=between) for between in (Between(heat=2), Between(held_back_percent=5.01)))
    assert findings(hot) == [Finding("the processor became too hot and slowed down (events: 2)", breaks=True)]
    assert findings(held) == [
        Finding("a CPU quota held the lab back for 5.0 % of the time; the limit is 5 %", breaks=True)
    ]
    assert findings(replace(QUIET, between=Between(held_back_percent=5.0))) == []


def test_caches_of_the_host_that_somebody_empties_break() -> None:
    (finding,) = findings(replace(QUIET, between=Between(caches_dropped=1)))
    assert finding == Finding("the host's caches were emptied while the workloads ran (drop_caches)", breaks=True)


@pytest.mark.parametrize("allow", [Allow(), Allow(noise=True)])
def test_a_host_that_was_suspended_breaks_whatever_is_allowed(allow: Allow) -> None:
    words = "the host was suspended for {} s while the workloads ran"
    for seconds, told in ((25.0, ["25"]), (0.1, ["0.1"]), (0.09, [])):
        seen = findings(replace(QUIET, between=Between(suspended=seconds)), allow)
        assert seen == [Finding(words.format(one), breaks=True) for one in told]


def test_memory_that_is_short_on_purpose_is_told_alone() -> None:
    short = replace(QUIET, pressure_percent=60.0, swapped_bytes=1e9)
    assert [finding.breaks for finding in findings(short)] == [True, True]
    assert [finding.breaks for finding in findings(short, Allow(memory_overcommit=True))] == [False, False]


def test_the_kernel_s_own_work_is_no_other_work() -> None:
    """A cell of disks: 30 % outside of the lab's processes, most of it in softirq, loop devices and writeback."""
    means = {
        "cpu_outside_lab_percent": 30.0,
        "cpu_softirq_percent": 9.0,
        "cpu_irq_percent": 1.0,
        "cpu_speed_percent": 100.0,
    }

    def seen(threads: float) -> Disturbance:
        return Disturbance.of(lambda name, _s, _u: means.get(name, 0.0), (0.0, 60.0), Between(threads), unmoved)

    assert seen(16.0).other_percent == 4.0
    assert findings(seen(16.0)) == []
    assert seen(21.0).other_percent == 0.0
    assert [finding.breaks for finding in findings(seen(12.0))] == [False]
    means["cpu_outside_lab_percent"] = math.nan
    assert math.isnan(seen(1.0).other_percent)


def test_noise_that_is_allowed_is_told_alone() -> None:
    loud = Disturbance(99.0, 99.0, 99.0, 1e12, 9.0, Between(heat=1, held_back_percent=99.0))
    told, broken = findings(loud, Allow(noise=True)), findings(loud)
    assert len(told) == len(broken) == 7
    assert all(finding.breaks for finding in broken) and not any(finding.breaks for finding in told)
    assert [finding.text for finding in told] == [finding.text for finding in broken]


def test_a_cell_of_a_moment_has_too_few_samples_to_call_them_late() -> None:
    assert findings(replace(QUIET, lateness=4.0), seconds=4.9) == []


def test_a_little_pressure_is_told() -> None:
    (finding,) = findings(replace(QUIET, pressure_percent=1.1))
    assert not finding.breaks
    assert findings(replace(QUIET, pressure_percent=1.0)) == []


def test_swap_is_what_went_both_ways_over_the_whole_span() -> None:
    rates = {"swap_in_bytes_per_second": 1000.0, "swap_out_bytes_per_second": 500.0}
    seen = Disturbance.of(lambda name, _since, _until: rates.get(name, 0.0), (100.0, 120.0), Between(), unmoved)
    assert seen.swapped_bytes == 30_000


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"governor": "performance", "turbo": False}, None),
        ({"governor": None, "turbo": None}, None),
        ({"governor": "powersave", "turbo": False}, "its governor is powersave, not performance"),
        ({"governor": "performance", "turbo": True}, "turbo is on"),
        ({"governor": "schedutil", "turbo": True}, "its governor is schedutil, not performance and turbo is on"),
    ],
)
def test_a_speed_that_is_not_fixed_is_told(facts: dict[str, object], said: str | None) -> None:
    assert unfixed_speed(facts) == (said and f"the processor's speed is not fixed: {said}")


@pytest.mark.parametrize(
    ("file", "text", "on"),
    [("intel_pstate/no_turbo", "0", True), ("intel_pstate/no_turbo", "1", False), ("cpufreq/boost", "1", True)],
)
def test_turbo_is_read_from_either_driver(
    tmp_path_factory: pytest.TempPathFactory, file: str, text: str, on: bool
) -> None:
    sys = tmp_path_factory.mktemp("sys")
    assert turbo(Roots(sys=sys)) is None
    place = sys / "devices/system/cpu" / file
    place.parent.mkdir(parents=True)
    place.write_text(f"{text}\n")
    assert turbo(Roots(sys=sys)) is on


def test_the_host_s_own_guests_are_named_with_what_they_took() -> None:
    used = (NeighbourUse("db", 21.4, 3 << 20), NeighbourUse("web", 9.0, 0), NeighbourUse("idle", 0.2, 5 << 20))
    (cpus, disks) = findings(replace(QUIET, other_percent=30.0, between=Between(neighbours=used)))
    assert cpus.breaks
    assert cpus.text.startswith("the host's other work took 30 % of the CPUs (guests of this host: db 21 %, web 9 %); ")
    assert disks == Finding(
        "guests of this host used disks while the workloads ran: idle 5 MiB/s, db 3 MiB/s", breaks=False
    )


def test_of_many_guests_the_busiest_three_are_named() -> None:
    used = tuple(NeighbourUse(f"g{place}", 9.0 - place, 0) for place in range(5))
    (told,) = findings(replace(QUIET, other_percent=6.0, between=Between(neighbours=used)))
    assert "(guests of this host: g0 9 %, g1 8 %, g2 7 %, 2 more)" in told.text
