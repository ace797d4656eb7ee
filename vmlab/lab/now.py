"""What a viewer may change of the cell that runs."""

from __future__ import annotations

from typing import Any

from vmlab.lab.cell import CellRun
from vmlab.model.errors import UsageError


async def change_now(cell: CellRun | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Change the cell that runs: its ``cache`` mode, or ``end`` its loop. Raises UsageError and CommandFailed."""
    origin = str(arguments.pop("origin", "vmlab"))
    if arguments.keys() not in ({"cache"}, {"end"}):
        raise UsageError("of a cell that runs the cache mode alone can be changed, and a loop be ended")
    if cell is None:
        raise UsageError("no cell runs now")
    if "end" in arguments:
        return cell.loop.end(origin)
    return await cell.live_cache.switch(arguments["cache"], origin)
