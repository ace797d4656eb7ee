"""What the kernel counted for a client, from the program ``accounted``; and the folder of the client's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from vmlab.model.errors import WorkloadError
from vmlab.model.names import DATA_FOLDER, IN_MEMORY
from vmlab.workloads.contents import own_seed, tool_seed
from vmlab.workloads.contract import Shell, WorkloadContext
from vmlab.workloads.programs import command, is_amount, last_object

_PLAIN_PATH = r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$"


def _plain_path(path: str) -> str:
    if len(path) > 200 or not re.fullmatch(_PLAIN_PATH, path):
        raise ValueError(f"must be an absolute path of plain letters, digits and '._-', such as {DATA_FOLDER}")
    return path


Folder = Annotated[str, AfterValidator(_plain_path), WithJsonSchema({"type": "string", "pattern": _PLAIN_PATH})]
"""A folder of a place, without ``..`` and without a letter that a tool or a shell reads as something else."""


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


def draw(context: WorkloadContext) -> int:
    """A seed of 31 bits for a tool, from the run's seed, the tile and the workload's name; never 0."""
    return tool_seed(own_seed(context))


def own_folder(folder: str, workload: str) -> str:
    """The workload's own folder, which it makes and takes away."""
    return f"{folder}/vmlab-{workload}"


async def make_own_folder(shell: Shell, folder: str, workload: str) -> str:
    """An empty folder for the workload's files below `folder`; what an earlier run left in it is removed."""
    own = own_folder(folder, workload)
    await remove_own_folder(shell, folder, workload)
    await shell.run(["mkdir", "-p", own])
    return own


async def remove_own_folder(shell: Shell, folder: str, workload: str) -> None:
    """Remove the workload's files and their folder: plain files alone, and no folder that holds more."""
    own = own_folder(folder, workload)
    await shell.run(["find", own, "-xdev", "-type", "f", "-delete"], deadline=600, check=False)
    await shell.run(["rmdir", "--ignore-fail-on-non-empty", own], check=False)


async def demand_disk(shell: Shell, folder: str) -> None:
    """Raises WorkloadError where a folder is in memory: direct I/O succeeds there, and measures no disk."""
    kind = (await shell.run(["stat", "-f", "-c", "%T", folder])).stdout.strip()
    if kind in IN_MEMORY:
        raise WorkloadError(f"{folder} on {shell.name} is in memory ({kind}), not on a disk")
