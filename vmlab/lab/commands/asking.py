"""Asking a run for a change while it goes on."""

from __future__ import annotations

from typing import Any

from vmlab.lab.commands.command_socket import send_command
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import UsageError

OF_COMING_CELLS = ("cache", "tiles")
OF_RUNNING_GUESTS = ("cache", "ksm", "tiles")
"""What can be changed of cells to come, and of running guests: one at a time, and tiles in a loop alone."""
_ANSWER_SECONDS = 10.0
_NOW_SECONDS = 180.0
"""Dirty pages are written before running guests are switched, for at most half a minute; the rest is for the guests."""


def ask_for(folder: RunFolder, origin: str, change: dict[str, Any]) -> dict[str, Any]:
    """Ask for other cells to come, as `ComingCells.change` understands it; the answer is that of `coming_of`.

    Raises UsageError and RefusedError with one line when the run refuses or does not answer.
    """
    return _asked(folder, "set", _ANSWER_SECONDS, origin=origin, **change)


def coming_of(folder: RunFolder) -> dict[str, Any]:
    """The cells to come: as ``coming`` all of them, each as `CellToCome`, as ``cells`` those that are not skipped.

    Raises UsageError with one line when the run does not answer.
    """
    return _asked(folder, "coming", _ANSWER_SECONDS)


def ask_for_now(folder: RunFolder, origin: str, change: dict[str, Any]) -> dict[str, Any]:
    """Ask for another ``cache`` or ``ksm`` under the guests that run, or other ``tiles`` or the ``end`` of their loop.

    The answer is as `LiveSwitch.switch`, `LiveTiles.change` or `Loop.end` gives it.

    Raises UsageError and RefusedError as `ask_for`, and CommandFailed when it did not work.
    """
    return _asked(folder, "set", _NOW_SECONDS, origin=origin, now=True, **change)


def _asked(folder: RunFolder, command: str, deadline: float, **arguments: Any) -> dict[str, Any]:
    if not folder.alive():
        raise UsageError(f"run {folder.id} is not running")
    if not folder.control.exists():
        raise UsageError(f"run {folder.id} takes no commands yet, or no more")
    return send_command(folder.control, command, deadline=deadline, **arguments)
