"""Keys that several screens share: those that change the run that goes on, of a fleet's hosts, and of charts."""

from __future__ import annotations

from collections.abc import Iterator

from textual.binding import Binding

NOW = "Switch the running guests' cache mode now, writeback or none; invalidates this cell"
KSM_NOW = "Switch the host's KSM now, on or off; invalidates this cell"
TILE_NOW = "Loop: add a tile while the others work; invalidates this cell"
TILE_AWAY = "A loop: retire the newest tile when its rounds have ended"
FEWER = "Cells to come: one tile fewer"

RUN_KEYS = (
    Binding("b", "switch_cache", "Cache", key_display="bB", tooltip="Cells to come: cache writeback or none"),
    Binding("B", "switch_cache_now", "Cache now", show=False, tooltip=NOW),
    Binding("K", "switch_ksm_now", "KSM now", show=False, tooltip=KSM_NOW),
    Binding("plus,equals_sign", "change_tiles(1)", "Tiles", key_display="+-", tooltip="Cells to come: one tile more"),
    Binding("minus", "change_tiles(-1)", "Fewer tiles", key_display="-", show=False, tooltip=FEWER),
    Binding("e", "edit_coming", "Coming", tooltip="List the cells to come, to change, skip or put back each"),
    Binding("u", "as_planned", "As planned", show=False, tooltip="Cells to come: undo what was changed of them"),
    Binding("greater_than_sign", "change_tiles_now(1)", "Tile now", key_display="<>", show=False, tooltip=TILE_NOW),
    Binding("less_than_sign", "change_tiles_now(-1)", "Tile away", key_display="<", show=False, tooltip=TILE_AWAY),
    Binding("E", "end_loop", "End the loop", show=False, tooltip="A loop: no workload starts again"),
    Binding("X", "stop_run", "Stop", tooltip="Ask whether to stop the run that is shown"),
)
"""Live obeys these, and a replay says why it cannot."""
OF_A_RUN = frozenset(binding.action.partition("(")[0] for binding in RUN_KEYS)
CHANGING = OF_A_RUN | {"file", "picture", "start", "stop"}
"""The actions that start, change or stop a run, open a file by its path, or write one."""
WATCHES = "this console only watches; `vmlab serve --control` serves one that changes runs"
HOST_KEYS = (
    Binding(
        "f",
        "next_host(1)",
        "Next host",
        show=False,
        key_display="fF",
        tooltip="A fleet: its next host, or the one before, in full",
    ),
    Binding("F", "next_host(-1)", show=False),
)
SPAN_KEY = Binding("z", "span", "Hour", show=False, tooltip="Charts over all that is kept, up to an hour; or back")


def refused_keys(action: str) -> Iterator[Binding]:
    """The keys of `RUN_KEYS`, out of sight and for `action`, for a screen on which there is nothing to change."""
    for binding in RUN_KEYS:
        # A replay has those for a tile now for its speed.
        if "change_tiles_now" not in binding.action:
            yield Binding(binding.key, action, binding.description, show=False, tooltip=binding.tooltip)
