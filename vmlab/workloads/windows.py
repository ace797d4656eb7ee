"""A guest with Windows as a workload sees it. It has no POSIX shell: files are reached without commands."""

from __future__ import annotations

from typing import Protocol, cast

from vmlab.workloads.contract import Shell

_FOLDER = "C:/vmlab"


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
    return f"{_FOLDER}/vmlab-{workload}"


def windows_report(workload: str) -> str:
    """The file for what the workload's program reports."""
    return f"{_FOLDER}/{workload}.report"
