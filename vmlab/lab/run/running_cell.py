"""What a viewer may change of the cell that runs."""

from __future__ import annotations

from typing import Any

from vmlab.lab.cell.live_tiles import Widened
from vmlab.lab.commands.asking import OF_RUNNING_GUESTS
from vmlab.lab.run.cell_run import CellRun
from vmlab.model.errors import UsageError


async def change_now(cell: CellRun | None, arguments: dict[str, Any], widened: Widened) -> dict[str, Any]:
    """Change the cell that runs: its ``cache`` mode, the host's ``ksm``, or of a loop the ``tiles``; or ``end`` it.

    Raises UsageError, RefusedError and CommandFailed.
    """
    origin = str(arguments.pop("origin", "vmlab"))
    if len(arguments) != 1 or not arguments.keys() <= {*OF_RUNNING_GUESTS, "end"}:
        known = f"{', '.join(OF_RUNNING_GUESTS[:-1])} or {OF_RUNNING_GUESTS[-1]}"
        raise UsageError(f"of a cell that runs {known} can be changed, one at a time, and a loop be ended")
    if cell is None:
        raise UsageError("no cell runs now")
    if "end" in arguments:
        return cell.loop.end(origin)
    if cell.live_tiles.busy:
        raise UsageError(f"a tile of cell {cell.plan.index} is being added or retired; wait until that is done")
    if "tiles" in arguments:
        if busy := [what for what, one in cell.live.items() if one.busy]:
            raise UsageError(f"{busy[0]} of cell {cell.plan.index} is being switched; wait until that is done")
        return cell.live_tiles.change(arguments["tiles"], origin, widened, cell.live_cache.mode)
    ((what, state),) = arguments.items()
    return await cell.live[what].switch(state, origin)
