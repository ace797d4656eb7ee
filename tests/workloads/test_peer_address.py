"""A target that others reach by another address than its own: every kind of two sides uses that one, and no other."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.shell import FakeShell, says
from vmlab.model.errors import WorkloadError
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import Finished, WorkloadContext

ELASTIC = "198.19.1.11"
PARAMS: dict[str, dict[str, Any]] = {
    "filecopy": {"files": 2, "bytes": 64},
    "http": {"requests": 4},
    "iperf3": {},
    "oltp": {"transactions": 1},
    "replay": {},
    "smtp": {"batches": 1, "messages": 1, "size": 1},
}


def test_every_kind_of_two_sides_is_among_these() -> None:
    assert {name for name, kind in kinds().items() if kind.sides == 2} == set(PARAMS)


@pytest.mark.parametrize("kind", PARAMS)
async def test_the_client_s_side_goes_where_the_target_is_reached(
    kind: str, context: WorkloadContext, source: FakeShell, target: FakeShell
) -> None:
    target.answers["nproc"] = says("1\n")
    reached = replace(context, reached=ELASTIC)
    workload = kinds()[kind](kinds()[kind].Params.model_validate(PARAMS[kind]))
    # What the guests answer is no part of this; a kind may stop at an answer once it has asked.
    with contextlib.suppress(WorkloadError):
        await workload.prepare(reached)
    client = workload.client(reached)
    with contextlib.suppress(WorkloadError):
        await workload.settle(reached, Finished(0, 1.0, "", ""))
    used = " ".join([*source.commands, *client.argv, client.stdin or ""])
    assert ELASTIC in used
    assert target.address not in used


def test_without_another_address_it_is_reached_by_its_own(context: WorkloadContext, target: FakeShell) -> None:
    assert context.peer_address == target.address
