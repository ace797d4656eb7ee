"""What a guest booted into, told by its systemd, against what it was to boot into."""

import pytest

from tests.fakes.boot import AS_THE_LAB
from tests.fakes.shell import FakeShell, says
from vmlab.guests.guest_setup import look_at_boot, wait_for_boot
from vmlab.model.errors import GuestError
from vmlab.model.scenarios.guest import Boot

NORMAL = """running
multi-user.target      loaded active active  Multi-User System
systemd-logind.service loaded active running User Login Management
"""
RESCUE = """maintenance
rescue.service loaded active running Rescue Shell
rescue.target  loaded active active  Rescue Mode
"""
SAID: dict[Boot, str] = {"lab": AS_THE_LAB, "normal": NORMAL, "rescue": RESCUE}


def guest(said: str) -> FakeShell:
    return FakeShell("vm", "198.18.1.10", {"list-units": says(said), "--wait": says("", status=1)})


@pytest.mark.parametrize("mode", SAID)
@pytest.mark.parametrize("really", SAID)
async def test_every_way_to_boot_is_itself_alone(mode: Boot, really: Boot) -> None:
    fault = (await look_at_boot(guest(SAID[really]), mode)).fault()
    assert (fault is None) is (mode == really), fault


async def test_active_and_failed_units_are_told_apart() -> None:
    said = SAID["normal"].replace("running", "degraded") + "e2scrub_reap.service loaded failed failed Reap\n"
    seen = await look_at_boot(guest(said), "normal")
    assert seen.fault() is None
    assert seen.to_json() == {
        "mode": "normal",
        "state": "degraded",
        "target": "multi-user.target",
        "units": ["multi-user.target", "systemd-logind.service"],
        "failed": ["e2scrub_reap.service"],
    }


@pytest.mark.parametrize("said", ["", "\n", "running", SAID["rescue"].replace("maintenance", "starting")])
async def test_what_cannot_be_told_is_a_fault(said: str) -> None:
    assert (await look_at_boot(guest(said), "rescue")).fault() is not None


@pytest.mark.parametrize("said", ["running" * 10, "running\n" + "a.service loaded active running A\n" * 20_000])
async def test_units_that_no_record_can_hold_are_a_guests_error(said: str) -> None:
    with pytest.raises(GuestError, match="what it says of its units is not understood"):
        await look_at_boot(guest(said), "lab")


async def test_a_guest_is_waited_for_and_told_by_name_where_it_is_elsewhere() -> None:
    shell = guest(SAID["lab"])
    with pytest.raises(GuestError, match=r"^vm: it was to boot as rescue, into rescue.target, and is in vmlab.target$"):
        await wait_for_boot(shell, "rescue")
    assert shell.commands[0] == "systemctl is-system-running --wait"
    await wait_for_boot(guest(SAID["rescue"]), "rescue")


async def test_the_labs_own_boot_is_not_waited_for() -> None:
    shell = guest(SAID["lab"])
    await wait_for_boot(shell, "lab")
    assert shell.commands == []
