"""An attempt counts where the copy is like the recording, and says of the other mode what the domain itself showed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.copied_loads.loads import KEPT, LOADS, OTHER, RECORDED, WAYS, faults_of
from vmlab.plan.copied_guest.copied_load import CACHED

GAINED = {RECORDED: {"reads": 0.0098, "writes": 0.0101}, OTHER: {"reads": 0.0002, "writes": 0.0003}}
EQUAL = {RECORDED: {"reads": 0.100, "writes": 0.101}, OTHER: {"reads": 0.099, "writes": 0.100}}


def answer(
    better: bool | None, *, alike: bool = True, proposed: bool = True, interval: list[float] | None = None
) -> dict[str, Any]:
    """What `vmlab advise --json` says of a copy; its reads are slower while the page cache is cold."""
    told = {"better": better, "verdict": "", "interval_percent": interval}
    place = {"setting": f"cache-{OTHER}", "metric": "latency_mean"}
    answers: list[dict[str, Any]] = [
        {**place, "access": access, "way": way, "difference": told}
        for access in (CACHED, "random")
        for way in WAYS
        if (access, way) != ("random", "reads")
    ]
    answers.append({**place, "access": "random", "way": "reads", "difference": {"better": False}})
    changes = [{"setting": f"cache-{OTHER}"}] if proposed else []
    return {"is_likeness": alike, "answers": answers if alike else [], "changes": changes}


@pytest.mark.parametrize(
    ("load", "truth", "said"),
    [("gains", GAINED, answer(True)), ("limited", EQUAL, answer(None, proposed=False, interval=[-3.2, 2.4]))],
)
def test_a_right_answer(load: str, truth: dict[str, dict[str, float]], said: dict[str, Any]) -> None:
    assert faults_of(LOADS[load], truth, said) == []


@pytest.mark.parametrize(
    ("load", "truth", "said"),
    [
        ("gains", GAINED, answer(None)),
        ("gains", GAINED, answer(False, proposed=False)),
        ("gains", GAINED, answer(True, proposed=False)),
        ("gains", GAINED, answer(True, alike=False)),
        ("gains", EQUAL, answer(True)),
        ("limited", EQUAL, answer(True, proposed=False, interval=[-30.0, -20.0])),
        ("limited", EQUAL, answer(None, proposed=False)),
        ("limited", EQUAL, answer(None, proposed=False, interval=[-12.0, 3.0])),
        ("limited", EQUAL, answer(None, proposed=True, interval=[-3.2, 2.4])),
        ("limited", GAINED, answer(None, proposed=False, interval=[-3.2, 2.4])),
    ],
)
def test_a_wrong_one(load: str, truth: dict[str, dict[str, float]], said: dict[str, Any]) -> None:
    assert faults_of(LOADS[load], truth, said)


def test_of_each_attempt_that_is_kept_it_is_said_whether_it_is_right() -> None:
    kept = json.loads(KEPT.read_text())
    assert kept
    assert {name: faults_of(LOADS[one["load"]], one["truth"], one["copied"]) for name, one in kept.items()} == {
        name: one["faults"] for name, one in kept.items()
    }
