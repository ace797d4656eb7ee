"""Servers of a guest's roles: started by name, and named where they do not start."""

from __future__ import annotations

import pytest

from tests.fakes.shell import FakeShell, says
from vmlab.guests.guest_setup import start_services
from vmlab.model.errors import GuestError


async def test_the_units_of_all_roles_are_started_at_once() -> None:
    shell = FakeShell("front", "")
    await start_services(shell, ["web", "mail"], 10)
    assert shell.commands == ["systemctl start mariadb.service apache2.service postfix.service"]


async def test_a_guest_without_a_role_is_asked_nothing() -> None:
    shell = FakeShell("vm", "")
    await start_services(shell, [], 10)
    assert not shell.commands


async def test_the_unit_that_did_not_start_is_named_with_its_reason_and_the_last_line_of_its_log() -> None:
    shell = FakeShell("front", "")
    shell.answers["systemctl start"] = says("", status=1, stderr="Job failed.")
    shell.answers["show --property=ActiveState --property=Result apache2"] = says(
        "Result=timeout\nActiveState=failed\n"
    )
    shell.answers["systemctl show"] = says("Result=success\nActiveState=active\n")
    shell.answers["journalctl --unit apache2.service"] = says("Failed to start Apache.\n")
    with pytest.raises(GuestError) as told:
        await start_services(shell, ["web", "mail"], 10)
    assert str(told.value) == "front: did not start: apache2.service (timeout: Failed to start Apache.)"
