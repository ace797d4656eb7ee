"""Small programs that workloads run inside guests; they lie in ``payload/`` and need nothing but Python itself;
and the files that a workload makes: the folder of its own where they lie, and what they hold.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any, Literal, Protocol, cast

from pydantic import AfterValidator, WithJsonSchema

from vmlab.model.errors import WorkloadError
from vmlab.model.names import DATA_FOLDER, IN_MEMORY, WORKLOADS_FOLDER
from vmlab.model.visible import cut
from vmlab.workloads.shell import Shell
from vmlab.workloads.verification import is_amount, last_object, line_object
from vmlab.workloads.workload_steps import Progress, WorkloadContext

_LONGEST_STAGE = 80
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
    whole = float(told[total] if isinstance(total, str) else total)
    return Progress(float(told[done]), whole, unit, cut(str(told.get(stage, "")), _LONGEST_STAGE))


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
