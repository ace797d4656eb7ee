"""The keys that change the run that goes on: Live obeys them, and a replay says why it cannot."""

from __future__ import annotations

from collections.abc import Iterator

from textual.binding import Binding

NOW = "Switch the running guests' cache mode now, writeback or none; invalidates this cell"
KSM_NOW = "Switch the host's KSM now, on or off; invalidates this cell"
MORE_TILES = "Cells to come: one tile more"
FEWER_TILES = "Cells to come: one tile fewer"
TILE_NOW = "Loop: add a tile while the others work; invalidates this cell"
TILE_AWAY = "A loop: retire the newest tile when its rounds have ended"

RUN_KEYS = (
    Binding("b", "switch_cache", "Cache", key_display="bB", tooltip="Cells to come: cache writeback or none"),
    Binding("B", "switch_cache_now", "Cache now", show=False, tooltip=NOW),
    Binding("K", "switch_ksm_now", "KSM now", show=False, tooltip=KSM_NOW),
    Binding("plus,equals_sign", "change_tiles(1)", "Tiles", key_display="+-", tooltip=MORE_TILES),
    Binding(
        "minus",
        "change_tiles(-1)",
        "Fewer tiles",
        key_display="-",
        show=False,
        tooltip=FEWER_TILES,
    ),
    Binding("e", "edit_coming", "Coming", tooltip="List the cells to come, to change, skip or put back each"),
    Binding("u", "as_planned", "As planned", show=False, tooltip="Cells to come: undo what was changed of them"),
    Binding("greater_than_sign", "change_tiles_now(1)", "Tile now", key_display="<>", show=False, tooltip=TILE_NOW),
    Binding("less_than_sign", "change_tiles_now(-1)", "Tile away", key_display="<", show=False, tooltip=TILE_AWAY),
    Binding("E", "end_loop", "End the loop", show=False, tooltip="A loop: no workload starts again"),
    Binding("X", "stop_run", "Stop", tooltip="Ask whether to stop the run that is shown"),
)


def refused_keys(action: str) -> Iterator[Binding]:
    """The same keys, out of sight and for `action`, for a screen on which there is nothing to change."""
    for binding in RUN_KEYS:
        if "change_tiles_now" in binding.action:
            # A replay has these keys for its speed.
            continue
        yield Binding(binding.key, action, binding.description, show=False, tooltip=binding.tooltip)
