"""Small programs that workloads run inside guests; they lie in ``payload/`` and need nothing but Python itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from vmlab.model.errors import WorkloadError
from vmlab.model.names import WORKLOADS_FOLDER
from vmlab.workloads.contract import Progress, Shell
from vmlab.workloads.verification import is_amount, last_object, line_object

_PYTHON = ("/usr/bin/python3", "-I", "-S")


def command(name: str, options: dict[str, Any]) -> tuple[str, ...]:
    """The argv of the installed program `name`; its options travel as one JSON argument."""
    return (*_PYTHON, f"{WORKLOADS_FOLDER}/{name}.py", json.dumps(options, separators=(",", ":")))


async def install(shell: Shell, *names: str) -> None:
    """Write programs into a guest. Raises GuestError."""
    for name in names:
        source = resources.files("vmlab.workloads").joinpath("payload", f"{name}.py")
        await shell.write(f"{WORKLOADS_FOLDER}/{name}.py", source.read_bytes())


async def ask(shell: Shell, name: str, options: dict[str, Any], *, deadline: float) -> dict[str, Any]:
    """Run an installed program to its end and return the JSON object on its last line.

    Raises GuestError when it fails, DeadlineExceeded, and WorkloadError where it printed something else.
    """
    completed = await shell.run(command(name, options), deadline=deadline)
    return last_object(completed.stdout, f"{name} on {shell.name}")


def told_progress(
    line: str, unit: str, *, done: str = "done", total: str | float = "total", stage: str = "stage"
) -> Progress | None:
    """The progress in a line of JSON, by the keys `done`, `total` (or that number) and `stage`; None in any other."""
    told = line_object(line)
    if told is None or done not in told:
        return None
    return Progress(
        float(told[done]), float(told[total] if isinstance(total, str) else total), unit, str(told.get(stage, ""))
    )


@dataclass(frozen=True, slots=True)
class Account:
    """What a client and its children read from storage and wrote towards it, in bytes, and how long it ran, in seconds.

    `direct` maps each file that was seen open to whether it was open with O_DIRECT.
    """

    seconds: float
    read: int
    written: int
    direct: dict[str, bool]


def accounted(argv: Sequence[str], folder: str = "", files: int = 0) -> tuple[str, ...]:
    """The argv that runs a program under account, until `files` files below `folder` were seen open."""
    return command("accounted", {"argv": list(argv), "folder": folder, "files": files})


def parse_account(text: str) -> Account:
    """The account on the last line of a client's output. Raises WorkloadError."""
    said = last_object(text, "the account of the client")
    try:
        if not all(is_amount(said[key]) for key in ("seconds", "read", "written")):
            raise ValueError
        return Account(
            seconds=float(said["seconds"]),
            read=int(said["read"]),
            written=int(said["written"]),
            direct={str(path): bool(direct) for path, direct in said["open"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WorkloadError(f"the account of the client cannot be read: {str(said)[:200]!r}") from error
