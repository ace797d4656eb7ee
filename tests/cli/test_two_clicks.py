"""Questions of readers: the first page of the documentation leads to each answer within two links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CLICKS = 2
ANSWERS = {
    "How do I install it without root?": ("install.md", "vmlab demo"),
    "What does a host need to run guests?": ("install.md", "libvirt's QEMU driver, 10 GiB of disk"),
    "How do I go from nothing to a decision?": ("tutorial.md", "vmlab run cache-modes"),
    "Can I run it in a container?": ("how-to/container.md", "podman run"),
    "How do I write my own experiment?": ("how-to/own-scenario.md", "workloads:"),
    "Which keys may a scenario have?": ("reference/scenario-keys.md", "| `cpu_shares` |"),
    "Which experiments come with it?": ("reference/scenarios.md", "| `cache-modes` |"),
    "How many tiles does my host carry?": ("explanation/scale.md", "vmlab scale"),
    "Is this difference real?": ("how-to/read-a-comparison.md", "**The verdict**"),
    "How many repeats do I need?": ("explanation/statistics.md", "## How many repeats"),
    "Why is my cell invalid?": ("explanation/validity.md", "`host_other_percent`"),
    "My host is never idle: what can I do?": ("how-to/busy-host.md", "--allow-noise"),
    "How do I fail a CI job?": ("how-to/ci-gate.md", "--fail-if"),
    "What do the exit codes mean?": ("reference/exit-codes.md", "| 130, 143 |"),
    "What does it change on my host, and how do I undo it?": ("explanation/host-safety.md", "`vmlab clean`"),
    "Which cache mode is safe, and what does it cost?": ("explanation/cache-modes.md", "| `unsafe` |"),
    "Is writeback safe with live migration?": ("explanation/cache-modes.md", "drop-cache"),
    "How do two runs of the same thing differ?": ("explanation/statistics.md", "## Two runs of the same thing"),
    "How do I uninstall it and free the space?": ("explanation/host-safety.md", "## Uninstall"),
    "What is a cell, a tile, a limited host?": ("development/glossary.md", "| limited host |"),
    "Why not just fio in a guest?": ("index.md", "## Why not just fio in a guest?"),
    "Has it been run on KVM?": ("evidence/hosts.md", "working KVM"),
    "How long will it take?": ("tutorial.md", "time     about 4 min"),
    "What does ~ before a difference mean?": ("how-to/read-a-comparison.md", "| `~` | not proven"),
    "Which options does a command have?": ("reference/command-line.md", "| `--steady TIME` |"),
    "What of io_uring, iothreads, qcow2 and discard?": ("reference/levers.md", "| `data_discard` |"),
    "Would another cache mode help my own VM?": ("how-to/from-a-slow-vm.md", "vmlab advise last -o"),
    "Why does `tcg` stand behind a figure?": ("explanation/tcg-and-kvm.md", "`tcg`"),
    "How do I look at a run on another machine?": ("how-to/move-runs.md", "vmlab import"),
    "Which keys does the console have?": ("reference/console.md", "| `K` | KSM now |"),
    "How do I read the results from a program?": ("reference/json.md", "`vmlab.run/1`"),
    "How do I get figures into a spreadsheet or Prometheus?": ("reference/exports.md", "openmetrics"),
    "What exactly is measured of the host?": ("reference/telemetry.md", "`disk_await_ms`"),
    "Can guests start from my own image?": ("how-to/own-image.md", "vmlab image add"),
    "What does a workload do, and what is verified?": ("reference/workloads.md", "Verified"),
    "What does measuring itself cost?": ("evidence/performance.md", "recorder"),
}
_LINK = re.compile(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)")


def links(page: Path) -> set[Path]:
    """The pages that `page` links to."""
    return {(page.parent / link).resolve() for link in _LINK.findall(page.read_text(encoding="utf-8"))}


def within(clicks: int) -> set[Path]:
    """The pages that the first one reaches by so many links, itself included."""
    found = newest = {DOCS / "index.md"}
    for _ in range(clicks):
        newest = {link for page in newest for link in links(page) if link.is_file()} - found
        found = found | newest
    return found


@pytest.mark.parametrize(("page", "words"), ANSWERS.values(), ids=ANSWERS)
def test_two_clicks_lead_to_the_page_with_the_answer(page: str, words: str) -> None:
    assert DOCS / page in within(CLICKS)
    assert words in (DOCS / page).read_text(encoding="utf-8")
