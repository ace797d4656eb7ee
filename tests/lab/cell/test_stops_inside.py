"""CPU quotas inside guests: those that a user's image has are its own, and a change of one is a disturbance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.fakes.guest_stops import WatchInside
from tests.fakes.shell import Answer, FakeShell, says
from tests.lab.one_cell import scenario_plan
from vmlab.lab.cell.disturbance import Finding
from vmlab.lab.cell.stops_inside import StopsInside
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.timing import USUAL
from vmlab.model.errors import GuestError
from vmlab.workloads.shell import Completed

APP = "system.slice/app.service"
QUOTA = f"/sys/fs/cgroup/{APP}/cpu.max:20000 100000\n/sys/fs/cgroup/system.slice/cpu.max:max 100000\n"
WHILE = "throttled inside its guest for 3 s while the workloads ran"


class Watched(FakeShell):
    """A guest in which `group` was throttled for three seconds."""

    group = APP

    async def launch(self, argv: list[str]) -> WatchInside:
        return WatchInside(((self.group, "throttled", 3.0),))


async def findings(
    group: str, before: Answer | str, after: Answer | str, image: str
) -> tuple[list[Finding], list[str]]:
    """What a cell is told of, with the quotas as grep lists them; and the commands that the guest ran."""
    plan = scenario_plan().cells[0].guests[0]
    guest = replace(plan, resources=plan.resources.model_copy(update={"image": image}))
    shell = Watched("quick", "198.18.0.11")
    shell.group = group
    guests: Any = SimpleNamespace(guests=[guest], shells={guest.key: shell}, has_windows=lambda _guest: False)
    inside = StopsInside(cast(GuestSet, guests), USUAL)
    shell.answers["cpu.max"] = says(before) if isinstance(before, str) else before
    await inside.begin()
    await inside.start()
    shell.answers["cpu.max"] = says(after) if isinstance(after, str) else after
    await inside.end()
    await inside.stop()
    return list(inside.findings()), shell.commands


async def test_a_quota_that_a_users_image_has_before_and_after_is_told_alone() -> None:
    (found,), _ = await findings(APP, QUOTA, QUOTA, "mine")
    assert found == Finding(f"t1-quick: {APP} was {WHILE}, by a quota of its image", breaks=False)


@pytest.mark.parametrize(
    ("group", "before", "after"),
    [
        (APP, "", QUOTA),
        (APP, QUOTA, ""),
        (APP, QUOTA, QUOTA.replace("20000", "30000")),
        (APP, QUOTA.replace("20000", "max"), QUOTA),
        ("system.slice", QUOTA, QUOTA),
        (APP, "what is no list", QUOTA),
    ],
)
async def test_a_quota_that_was_changed_is_a_disturbance(group: str, before: str, after: str) -> None:
    (found,), _ = await findings(group, before, after, "mine")
    assert found == Finding(f"t1-quick: {group} was {WHILE}", breaks=True)


def refused(argv: Sequence[str]) -> Completed:
    raise GuestError(f"no answer to {argv[0]}")


@pytest.mark.parametrize("failing", ["before", "after"])
async def test_where_quotas_are_not_listed_nothing_is_excused_and_what_stood_still_is_told(failing: str) -> None:
    """A list that fails before the workloads, or after them."""
    lists: dict[str, Answer | str] = {"before": QUOTA, "after": QUOTA, failing: refused}
    (found,), _ = await findings(APP, lists["before"], lists["after"], "mine")
    assert found == Finding(f"t1-quick: {APP} was {WHILE}", breaks=True)


async def test_nothing_is_asked_of_a_guest_with_vmlabs_own_image_which_has_none() -> None:
    (found,), commands = await findings(APP, QUOTA, QUOTA, "debian")
    assert found.breaks and commands == []
