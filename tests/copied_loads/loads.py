"""Loads whose best cache mode is known by construction, and what a copy of one has to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.plan.copied_guest.copied_load import CACHED

WAYS = {"reads": "rd", "writes": "wr"}
"""Directions as a copy names them, and as libvirt's statistics do."""
GAIN = 0.8
"""Writeback gains where a mean latency is at most this part of that without a page cache, in the domain itself."""
NEAR = 0.1
"""It gains nothing where each differs by less than this part."""
RECORDED, OTHER = "none", "writeback"
KEPT = Path(__file__).parents[2] / "docs/evidence/copied-loads.json"
"""What came of each attempt: when, where and on which commit, what the domain showed, and what was said of its copy."""


@dataclass(frozen=True, slots=True)
class Load:
    """What fio does in the domain: `jobs` are its words, `limit_iops` the disk's own limit, 0 for none."""

    jobs: tuple[str, ...]
    gains: bool
    limit_iops: int = 0

    def fio(self) -> str:
        """The command."""
        of_all = "--filename=/dev/vdb --direct=1 --time_based --runtime=7200"
        return " ".join(
            ("/usr/bin/fio", of_all, *(f"--name=job{number} {job}" for number, job in enumerate(self.jobs)))
        )


LOADS = {
    "gains": Load(
        ("--rw=randread --bs=4k --rate_iops=20", "--rw=randwrite --bs=16k --rate_iops=10"),
        gains=True,
    ),
    "limited": Load(
        ("--rw=randread --bs=4k --numjobs=2 --thread", "--rw=randwrite --bs=16k --numjobs=2 --thread"),
        gains=False,
        limit_iops=40,
    ),
}
"""Two rates and two sizes each: a disk that seeks, with a page cache above it or none; and a limit that decides."""


def changes_of(truth: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean latency under the other mode as a part of that under the recorded one, by direction."""
    return {way: truth[OTHER][way] / truth[RECORDED][way] for way in WAYS}


def told_of(copied: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of `copied` in the answer of `vmlab advise --json`."""
    differences = ("verdict", "better", "percent", "interval_percent", "readings")
    answers = [
        {
            **{key: one[key] for key in ("access", "setting", "way", "metric")},
            "difference": {key: one["difference"][key] for key in differences},
        }
        for one in copied["answers"]
    ]
    changes = [{"setting": one["setting"]} for one in copied["changes"]]
    return {"is_likeness": copied["is_likeness"], "ways": copied["ways"], "answers": answers, "changes": changes}


def _agrees(load: Load, difference: Mapping[str, Any]) -> bool:
    """Whether it is proven to be better, or its whole interval is near 0: too few readings show neither."""
    if load.gains:
        return difference["better"] is True
    interval = difference["interval_percent"]
    return interval is not None and max(map(abs, interval)) < 100 * NEAR


def faults_of(load: Load, truth: Mapping[str, Mapping[str, float]], copied: Mapping[str, Any]) -> list[str]:
    """Why an attempt does not count; `truth` are mean latencies in seconds by mode and direction, `copied` what
    `vmlab advise --json` says of the copy.

    In the domain the host's page cache has what it reads: the copy with a cold one says nothing about these reads.
    """
    changes = changes_of(truth)
    faults = [
        f"in the domain {way} took {part:.2f} of their time: not as constructed"
        for way, part in changes.items()
        if (part > GAIN if load.gains else abs(part - 1) > NEAR)
    ]
    if not copied["is_likeness"]:
        faults.append("the copy is not like the recording")
    answers = {
        (one["access"], one["way"]): one["difference"]
        for one in copied["answers"]
        if one["setting"] == f"cache-{OTHER}" and one["metric"] == "latency_mean"
        if one["access"] == CACHED or one["way"] == "writes"
    }
    faults += [f"no answer for {way} with {OTHER}" for way in WAYS if (CACHED, way) not in answers]
    for (access, way), difference in answers.items():
        if not _agrees(load, difference):
            part, told = changes[way], {key: difference[key] for key in ("better", "verdict", "interval_percent")}
            faults.append(f"{access}, {way}: {told}, and in the domain {part:.2f} of the time")
    proposed = [one["setting"] for one in copied["changes"]]
    if (f"cache-{OTHER}" in proposed) is not load.gains:
        faults.append(f"it proposes {proposed or 'nothing'}")
    return faults
