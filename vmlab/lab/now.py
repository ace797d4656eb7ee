"""What a viewer may change of the cell that runs."""

from __future__ import annotations

from typing import Any

from vmlab.lab.cell import CellRun
from vmlab.model.errors import UsageError


async def change_now(cell: CellRun | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Change the cell that runs: its cache mode, and nothing else. Raises UsageError and CommandFailed."""
    origin = str(arguments.pop("origin", "vmlab"))
    if arguments.keys() != {"cache"}:
        raise UsageError("of a cell that runs the cache mode alone can be changed")
    if cell is None:
        raise UsageError("no cell runs now")
    return await cell.live_cache.switch(arguments["cache"], origin)
