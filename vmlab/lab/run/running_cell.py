"""What a viewer may change of the cell that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vmlab.lab.cell.live_tiles import Widened
from vmlab.lab.commands.asking import OF_RUNNING_GUESTS
from vmlab.lab.commands.command_server import ChangeRunning
from vmlab.lab.run.cell_run import CellRun
from vmlab.model.errors import UsageError


async def change_now(cell: CellRun | None, command: ChangeRunning, widened: Widened) -> Mapping[str, Any]:
    """Change the cell that runs: its ``cache`` mode, the host's ``ksm``, or of a loop the ``tiles``; or ``end`` it.

    Raises UsageError, RefusedError and CommandFailed.
    """
    if len(command.values) != 1:
        known = f"{', '.join(OF_RUNNING_GUESTS[:-1])} or {OF_RUNNING_GUESTS[-1]}"
        raise UsageError(f"of a cell that runs {known} can be changed, one at a time, and a loop be ended")
    if cell is None:
        raise UsageError("no cell runs now")
    if command.end:
        return cell.loop.end(command.origin)
    if cell.live_tiles.busy:
        raise UsageError(f"a tile of cell {cell.plan.index} is being added or retired; wait until that is done")
    if command.tiles is not None:
        if busy := [what for what, one in cell.live.items() if one.busy]:
            raise UsageError(f"{busy[0]} of cell {cell.plan.index} is being switched; wait until that is done")
        return cell.live_tiles.change(command.tiles, command.origin, widened, cell.live_cache.mode)
    ((what, state),) = command.values.items()
    switched = await cell.live[what].switch(str(state), command.origin)
    return {"what": switched.what, **asdict(switched)}
