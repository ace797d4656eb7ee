"""Which claims a host and a size can answer is known before anything is measured, and `vmlab plan` says it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vmlab.analysis.comparison.repeats_needed import with_enough_repeats
from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.errors import RefusedError
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan

HOST = HostFacts(2**36, 2**36, 2**40, 4, "tcg")
KVM = replace(HOST, accelerator_guess="kvm")
_COMPARES = "it compares guests with the host, and emulated guests (tcg) show what emulation costs"
_UNDER_KVM = "it needs guests under KVM, and emulated guests (tcg) show what emulation costs"
_SCENARIO = """\
name: trial
guests:
  vm: {vcpus: 2, memory: 4 GiB, disk: 8 GiB}
workloads:
  job: {kind: cpu, on: vm, threads: 1, events: 2000}
axes:
  setup:
    points:
      host: {workloads.job.on: host}
      vm: {workloads.job.on: vm}
      gone: {absent: needs another host}
  tiles: [1, 3]
sizes:
  smoke:
    job: {events: 500}
reference:
  source: A publication
  claims:
    - say: It is so.
      each: {tiles: [3]}
"""
_BOTH = "less: [{setup: host}, {setup: vm}]"
_LEVEL = "at_most: [{setup: vm}]\n      value: '1'"


def _plan(claim: str, host: HostFacts, size: str = "full", needs: str = "{}", *, looks: bool = False) -> Plan:
    text = f"{_SCENARIO}      {claim}\n      needs: {needs}\n"
    file = read(Path("x.yaml"), text)
    asked = Overrides(size=size, repeats="claims-once" if looks else None)
    return make_plan(file, with_enough_repeats(asked, file.scenario), host)


@pytest.mark.parametrize(
    ("claim", "needs", "host", "why"),
    [
        (_BOTH, "{}", HOST, [_COMPARES]),
        (_BOTH, "{}", KVM, []),
        (_LEVEL, "{}", HOST, []),
        (_LEVEL, "{virtualization: true}", HOST, [_UNDER_KVM]),
        (_LEVEL, "{virtualization: true}", KVM, []),
        ("less: [{setup: gone}, {setup: vm}]", "{}", HOST, ["setup gone is absent: needs another host"]),
        (_LEVEL, "{least_cpus: 4, most_cpus: 4}", HOST, []),
        (_LEVEL, "{least_cpus: 5}", HOST, ["it needs 5 CPUs at least, and there are 4"]),
        (_LEVEL, "{most_cpus: 3}", HOST, ["it needs 3 CPUs at most, and there are 4: nothing competes for them"]),
        (
            _LEVEL,
            "{memory_shortage: true}",
            HOST,
            ["it needs guests with more memory than the host; they have 12 GiB, and it has 64 GiB"],
        ),
        (_LEVEL, "{memory_shortage: true}", replace(HOST, memory_total_bytes=2**33), []),
        (_LEVEL, "{amounts: {job.events: 2000}}", HOST, []),
        (
            _LEVEL,
            "{amounts: {job.events: 3000}}",
            HOST,
            ["the amounts are too small: job.events is 2000, and it takes 3000 at least"],
        ),
    ],
)
def test_each_rule_has_its_reason(claim: str, needs: str, host: HostFacts, why: list[str]) -> None:
    found = _plan(claim, host, needs=needs).unanswerable
    assert [list(one.because) for one in found.values()] == ([why] if why else [])


def test_a_small_size_may_leave_open_what_a_larger_one_answers() -> None:
    needs = "{amounts: {job.events: 2000}}"
    assert not _plan(_LEVEL, KVM, "full", needs).unanswerable
    assert _plan(_LEVEL, KVM, "smoke", needs).unanswerable


def test_the_size_of_an_ordered_host_counts() -> None:
    text = f"{_SCENARIO}      {_LEVEL}\n      needs: {{most_cpus: 2}}\nhost: {{cpus: 2, memory: 8 GiB}}\n"
    file = read(Path("x.yaml"), text)
    assert not make_plan(file, Overrides(size="full"), HOST).unanswerable


def test_the_plan_says_so_and_repeats_for_claims_are_of_the_others_alone() -> None:
    plan = _plan(_BOTH, HOST)
    assert f"not answerable here: 1 of 1 claim\n  {_COMPARES}\n    It is so." in plan_text(plan, HOST)
    assert plan_document(plan, HOST, None)["plan"]["unanswerable"] == [{"say": "It is so.", "because": [_COMPARES]}]
    assert len(_plan(_BOTH, KVM, looks=True).cells) == 2 * 7
    nothing = _plan(_BOTH, HOST, looks=True)
    assert nothing.cells == ()
    with pytest.raises(RefusedError, match=r"nothing to run: no claim can be answered here: it compares guests"):
        check_fit(nothing, HOST)


def test_claims_that_cannot_be_answered_take_no_repeats_of_their_own() -> None:
    """The claim with four comparisons waits for more CPUs than any host has, and the other has one."""
    three = "equal_within: [{setup: vm}, {setup: host}, {setup: vm}]"
    many = f"    - say: More.\n      each: {{tiles: [1, 3]}}\n      {three}\n      needs: {{least_cpus: 60000}}\n"
    text = f"{_SCENARIO}      {_LEVEL}\n{many}"
    file = read(Path("x.yaml"), text)
    asked = Overrides(size="full", repeats="claims-once")
    assert with_enough_repeats(asked, file.scenario).looks == (9,)
    assert with_enough_repeats(asked, file.scenario, {"More."}).looks == (7,)
