"""Asking a run for a change while it goes on.

Each of these raises UsageError and RefusedError with one line when the run refuses or does not answer.
"""

from __future__ import annotations

from typing import Any

from vmlab.lab.commands.command_socket import send_command
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.answers import ComingAnswer, LoopEndAnswer, SwitchAnswer, TilesAnswer
from vmlab.model.errors import UsageError
from vmlab.model.event_fields import CellToCome

OF_COMING_CELLS = ("cache", "tiles")
OF_RUNNING_GUESTS = ("cache", "ksm", "tiles")
"""What can be changed of cells to come, and of running guests: one at a time, and tiles in a loop alone."""
_ANSWER_SECONDS = 10.0
_NOW_SECONDS = 180.0
"""Dirty pages are written before running guests are switched, for at most half a minute; the rest is for the guests."""


def ask_for(folder: RunFolder, origin: str, change: dict[str, Any]) -> ComingAnswer:
    """Ask for other cells to come; `change` has fields of `ChangeComing`."""
    answer: ComingAnswer = _asked(folder, "set", _ANSWER_SECONDS, origin=origin, **change)
    return answer


def coming_of(folder: RunFolder) -> ComingAnswer:
    """The cells to come."""
    answer: ComingAnswer = _asked(folder, "coming", _ANSWER_SECONDS)
    return answer


def coming_document(folder: RunFolder, cells: list[CellToCome]) -> dict[str, Any]:
    """The cells to come of a run, as the document ``vmlab.coming/1``."""
    return {"schema": "vmlab.coming/1", "run": folder.id, "cells": cells}


def change_running(folder: RunFolder, origin: str, **change: Any) -> SwitchAnswer | TilesAnswer | LoopEndAnswer:
    """Change one thing of the cell that runs; `change` has the field of `ChangeRunning`.

    A switch is done when it is answered; a change of a loop's tiles, or its end, has begun. Raises CommandFailed when
    it did not work.
    """
    answer: SwitchAnswer | TilesAnswer | LoopEndAnswer = _asked(
        folder, "set", _NOW_SECONDS, origin=origin, now=True, **change
    )
    return answer


def _asked(folder: RunFolder, command: str, deadline: float, **arguments: Any) -> Any:
    folder.demand_commandable()
    if not folder.control.exists():
        raise UsageError(f"run {folder.id} takes no commands: it is starting or ending")
    return send_command(folder.control, command, deadline=deadline, **arguments)
