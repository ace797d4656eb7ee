"""What a viewer may change of the cell that runs."""

from __future__ import annotations

from typing import Any

from vmlab.lab.cell import CellRun
from vmlab.lab.live_tiles import Widened
from vmlab.model.errors import UsageError


async def change_now(cell: CellRun | None, arguments: dict[str, Any], widened: Widened) -> dict[str, Any]:
    """Change the cell that runs: its ``cache`` mode, or of a loop the ``tiles``; or ``end`` the loop.

    Raises UsageError, RefusedError and CommandFailed.
    """
    origin = str(arguments.pop("origin", "vmlab"))
    if arguments.keys() not in ({"cache"}, {"tiles"}, {"end"}):
        raise UsageError("of a cell that runs the cache mode or the tiles can be changed, and a loop be ended")
    if cell is None:
        raise UsageError("no cell runs now")
    if "end" in arguments:
        return cell.loop.end(origin)
    if cell.live_tiles.busy:
        raise UsageError(f"a tile of cell {cell.plan.index} is being added or retired; wait until that is done")
    if "tiles" in arguments:
        if cell.live_cache.busy:
            raise UsageError(f"cell {cell.plan.index} is being switched to another cache mode; wait until that is done")
        return cell.live_tiles.change(arguments["tiles"], origin, widened, cell.live_cache.mode)
    return await cell.live_cache.switch(arguments["cache"], origin)
