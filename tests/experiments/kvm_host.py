"""What `make experiments HOST=kvm` asks: claims that had no answer where the page was made, on a host with KVM."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.checklist import say
from tests.experiments.answers import may_be_elsewhere
from tests.experiments.records import CLAIMED, kept, shipped
from vmlab.analysis.reference.claims import NOT_HERE
from vmlab.hypervisor import kvm_probe
from vmlab.lab.provision.host_support import prepare_run, with_repeats_here
from vmlab.model.places import cache_folder
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import ForClaims, Overrides
from vmlab.system import kvm_device

_SIZES = ("smoke", "demo")
"""Larger ones take days."""


def lacks_kvm() -> str:
    """Why guests would be emulated on this host; empty where they run under KVM, as far as is known."""
    answer = kvm_probe.without_device()
    if answer is None and (odd := kvm_device.for_its_kernels()):
        return odd
    answer = answer or kvm_probe.remembered(cache_folder())
    if answer is not None:
        return "" if answer.runs else answer.sentence
    return "" if kvm_device.may_work() else kvm_device.no_boot_words()


def virtualization() -> str:
    """What systemd-detect-virt(1) says of this host: ``none`` of bare metal, ``qemu`` of an emulated host."""
    try:
        found = subprocess.run(["systemd-detect-virt", "--vm"], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return found.stdout.strip() or "unknown"


def sizes_there(names: Sequence[str], repeats: ForClaims) -> dict[str, str]:
    """The least size at which this host answers most of the claims that the page cannot, by scenario.

    Scenarios without such claims are left, and said.
    """
    found = {}
    for name in names:
        file = shipped(name)
        asked = _unanswered(file)
        if not asked:
            say(f"left           {name}: none of its claims waits for a host with KVM")
            continue
        here = {size: asked - _unanswerable(file, size, repeats) for size in _SIZES if size in file.scenario.sizes}
        best = max(here, key=lambda size: len(here[size]))
        if here[best]:
            found[name] = best
        else:
            say(f"absent         {name}: this host answers no claim of it that the page leaves open")
    return found


def _unanswered(file: ScenarioFile) -> set[str]:
    """The claims that the page has no answer to and another host may have, by their sentences."""
    record = kept(file.scenario.name, CLAIMED)
    known = {one["say"]: one["answer"] for one in record["beside"]["claims"]} if record else {}
    claims = file.scenario.claims
    return {one.say for one in claims if known.get(one.say, NOT_HERE) == NOT_HERE and may_be_elsewhere(file, one)}


def _unanswerable(file: ScenarioFile, size: str, repeats: ForClaims) -> set[str]:
    plan, _ = prepare_run(file, with_repeats_here(file, Overrides(size=size, repeats=repeats)))
    return {*plan.unanswerable}
