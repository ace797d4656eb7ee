"""What the suite of Java programs printed: the seconds of each member, and whether its results are the known ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmlab.model.errors import WorkloadError
from vmlab.workloads.programs import figures_by_name, number_of
from vmlab.workloads.verification import demand_equal

CHECKSUMS: Mapping[str, str] = {
    "compiler": "fffff68a8edecb55",
    "compress": "b9a3f9cd",
    "crypto": "f50f2439",
    "derby": "49a3f5de",
    "mpegaudio": "7c270838",
    "scimark": "99c27b8c1e7ed950",
    "scimark.large": "7bb868e881cd3ac2",
    "serial": "5b3b2a1c",
    "startup": "2d6e89d4790",
    "sunflow": "579ec7c0",
    "xml": "5fdfd178",
}
"""The checksum of each member's result, as its source defines it; those of compress, crypto and derby are tested
against other implementations."""
_LEAST_SECONDS = 0.001
_CLOCK = 1e-6
"""Sums of times that were printed, one by one."""


def score_name(member: str) -> str:
    """The metric of a member's score."""
    return f"{member.replace('.', '_')}_score"


def parse_suite(text: str) -> dict[str, dict[str, Any]]:
    """The line of figures of each member, by its name. Raises WorkloadError where one stands twice."""
    return figures_by_name(text, "the suite", "member", "checksums")


def seconds_of(said: Mapping[str, Any], operations: int, threads: int, warmup: int, heap: int) -> float:
    """The seconds in which a member did all operations, each with the known result. Raises WorkloadError."""
    name = str(said["member"])
    demand_equal(f"threads of {name}", _number(said, "threads"), threads)
    demand_equal(f"heap of {name} in bytes", _number(said, "heap"), heap)
    _demand_results(name, said["checksums"], operations + threads * warmup)
    times, seconds = said.get("times"), _number(said, "seconds")
    if not isinstance(times, list) or not all(isinstance(one, float) and one > 0 for one in times):
        raise WorkloadError(f"the suite printed no times of {name}")
    demand_equal(f"operations of {name}", len(times), operations)
    if seconds < _LEAST_SECONDS:
        raise WorkloadError(f"{name} took {seconds:.6f} s, too quick to be measured; ask for more operations")
    if not max(times) - _CLOCK <= seconds or sum(times) > threads * seconds + _CLOCK * len(times):
        raise WorkloadError(f"the operations of {name} do not fit into its {seconds:.3f} s with {threads} threads")
    return seconds


def _demand_results(name: str, checksums: object, operations: int) -> None:
    if not isinstance(checksums, dict):
        raise WorkloadError(f"the suite printed no checksums of {name}")
    right = CHECKSUMS[name]
    wrong = [checksum for checksum in checksums if checksum != right]
    if wrong:
        raise WorkloadError(f"{name} gave a wrong result: its checksum is {wrong[0]}, and should be {right}")
    demand_equal(f"results of {name}", checksums.get(right, 0), operations)


def _number(said: Mapping[str, Any], name: str) -> float:
    return number_of(said, name, "the suite", said["member"])
