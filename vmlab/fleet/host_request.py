"""What a host's own run of a fleet is asked to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vmlab.fleet.asset_files import AssetFiles


@dataclass(frozen=True, slots=True)
class HostRequest:
    """What a host's own run is asked to be: the scenario, its overrides, and the cells that it must plan.

    With `together` the workloads of a cell start when those of other hosts do.
    `assets` are those that the plan needs, which hosts that lack them are sent.
    `reconnect` is for how many seconds a line that was cut is tried again, `hold` for how many the host's run waits
    for a further cell.
    """

    source: str
    text: str
    overrides: dict[str, Any]
    cells: list[tuple[int, dict[str, Any], int]]
    reconnect: float
    hold: float
    assets: AssetFiles
    together: bool = False
