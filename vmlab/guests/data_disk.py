"""A guest's data disk, inside the guest: makes its file system, mounts it, and checks it against what was asked."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from vmlab.model.cache import has_write_cache
from vmlab.model.errors import GuestError
from vmlab.model.names import DATA_FOLDER, DATA_SERIAL
from vmlab.model.scenarios.guest import GuestResources
from vmlab.workloads.contract import Shell

_SECONDS = 300.0


async def set_up_data_disk(shell: Shell, given: GuestResources) -> dict[str, Any]:
    """Make a file system on the disk that was plugged in, mount it at ``/data``; what the guest sees of it.

    As JSON values: `device`, `bytes`, `queues` (that its kernel uses), `read_ahead_bytes`, `write_cache`. Raises
    GuestError where the disk does not appear, or differs from what was asked for.
    """
    read_ahead = "" if given.read_ahead_bytes is None else str(given.read_ahead_bytes)
    asked = ["sh", "-eu", "-c", _program(), "data_disk", DATA_SERIAL, DATA_FOLDER, read_ahead]
    done = await shell.run(asked, deadline=_SECONDS)
    seen = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    try:
        found = {
            "device": seen["device"],
            "bytes": int(seen["bytes"]),
            "queues": int(seen["queues"]),
            "read_ahead_bytes": int(seen["read_ahead_bytes"]),
            "write_cache": seen["write_cache"] == "write back",
        }
        expected = _expected(given, int(seen["cpus"]))
        mounted = seen["mounted"]
    except (KeyError, ValueError) as error:
        raise GuestError(f"{shell.name}: what it says of its data disk is not understood") from error
    if mounted != found["device"]:
        raise GuestError(f"{shell.name}: {DATA_FOLDER} is {mounted or 'not mounted'}, not on {found['device']}")
    for name, value in expected.items():
        if found[name] != value:
            words = f"{name} {_word(found[name])}, not {_word(value)} as was asked"
            raise GuestError(f"{shell.name}: its data disk has {words}")
    return found


def _expected(given: GuestResources, cpus: int) -> dict[str, Any]:
    """What the guest must see; the kernel uses no more queues than there are CPUs."""
    expected: dict[str, Any] = {
        "bytes": given.data_bytes,
        "queues": min(given.data_queues, cpus),
        "write_cache": has_write_cache(given.data_mode),
    }
    return expected if given.read_ahead_bytes is None else {**expected, "read_ahead_bytes": given.read_ahead_bytes}


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@cache
def _program() -> str:
    return resources.files("vmlab.guests.payload").joinpath("data_disk.sh").read_text(encoding="utf-8")
