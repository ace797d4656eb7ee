"""Asking a run for a change while it goes on."""

from __future__ import annotations

from typing import Any

from vmlab.lab.control import send_command
from vmlab.lab.folder import RunFolder
from vmlab.model.errors import UsageError

_ANSWER_SECONDS = 10.0
_NOW_SECONDS = 180.0
"""Dirty pages are written before running guests are switched, for at most half a minute; the rest is for the guests."""


def ask_for(folder: RunFolder, origin: str, change: dict[str, Any]) -> dict[str, Any]:
    """Ask for other cells to come: ``cache``, a mode, or ``tiles``, a count. The answer has them as ``cells``.

    Raises UsageError and RefusedError with one line when the run refuses or does not answer.
    """
    return _asked(folder, _ANSWER_SECONDS, origin=origin, **change)


def ask_for_now(folder: RunFolder, origin: str, change: dict[str, Any]) -> dict[str, Any]:
    """Ask for another ``cache`` mode of the guests that run; the answer is as `LiveCache.switch` gives it.

    Raises UsageError and RefusedError as `ask_for`, and CommandFailed when it did not work.
    """
    return _asked(folder, _NOW_SECONDS, origin=origin, now=True, **change)


def _asked(folder: RunFolder, deadline: float, **arguments: Any) -> dict[str, Any]:
    if not folder.alive():
        raise UsageError(f"run {folder.id} is not running")
    if not folder.control.exists():
        raise UsageError(f"run {folder.id} takes no commands yet, or no more")
    return send_command(folder.control, "set", deadline=deadline, **arguments)
