"""The files that a workload makes: the folder of its own where they lie, and what they hold.

Equal pages are what the host's KSM merges, so contents decide how much memory it saves.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal, Protocol, cast

from pydantic import AfterValidator, WithJsonSchema

from vmlab.model.errors import WorkloadError
from vmlab.model.names import DATA_FOLDER, IN_MEMORY
from vmlab.workloads.contract import Shell, WorkloadContext

_PLAIN_PATH = r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$"


def _plain_path(path: str) -> str:
    if len(path) > 200 or not re.fullmatch(_PLAIN_PATH, path):
        raise ValueError(f"must be an absolute path of plain letters, digits and '._-', such as {DATA_FOLDER}")
    return path


Folder = Annotated[str, AfterValidator(_plain_path), WithJsonSchema({"type": "string", "pattern": _PLAIN_PATH})]
"""A folder of a place, without ``..`` and without a letter that a tool or a shell reads as something else."""


Contents = Literal["identical", "unique"]
"""The same in all guests, or in each its own."""


def own_seed(context: WorkloadContext) -> str:
    """A seed for what one guest alone has: of the run, the tile and the workload."""
    return f"{context.seed}-{context.tile}-{context.workload}"


def tool_seed(seed: str) -> int:
    """A seed of 31 bits for a tool, from a seed in words; never 0."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") % (2**31 - 1) + 1


def file_seed(contents: Contents, context: WorkloadContext) -> int:
    """The seed of files, for a tool: of the run alone where they are the same in all guests."""
    return tool_seed(str(context.seed) if contents == "identical" else own_seed(context))


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


_WINDOWS_FOLDER = "C:/vmlab"


class WindowsPlace(Shell, Protocol):
    """`Shell.run` gives a program its words through cmd.exe. All raise GuestError and DeadlineExceeded."""

    async def read(self, path: str) -> str:
        """A file's text, with a newline alone where Windows ends a line."""
        ...

    async def make_folder(self, path: str) -> None:
        """Make an empty folder, with those above it; what was in it is removed."""
        ...

    async def sizes(self, path: str) -> dict[str, int]:
        """The bytes of each file in a folder, by its name."""
        ...

    async def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it; one that is not there is no error."""
        ...


def windows_place(shell: Shell) -> WindowsPlace:
    """The shell of a guest with Windows as one. The plan lets no workload for Windows run elsewhere."""
    return cast(WindowsPlace, shell)


def windows_folder(workload: str) -> str:
    """The workload's own folder."""
    return f"{_WINDOWS_FOLDER}/vmlab-{workload}"


def windows_report(workload: str) -> str:
    """The file for what the workload's program reports."""
    return f"{_WINDOWS_FOLDER}/{workload}.report"
