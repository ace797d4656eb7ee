"""The recorded stores whose pages are pinned: archives as `vmlab export` writes them."""

from __future__ import annotations

from pathlib import Path

from tests.compatibility.promised import KEPT
from vmlab.store.archive import unpack

_FOLDER = Path(__file__).parent / "stores"
STORES = {
    "tile": KEPT / "0.1.0/run.vmlab",
    "consolidation": KEPT / "0.1.0-tiles/run.vmlab",
    **{path.stem: path for path in sorted(_FOLDER.glob("*.vmlab"))},
}
ALONE = [name for name in STORES if not name.endswith("-later")]
"""Those that are told of alone; the others stand beside one of these."""
SIDES = {
    "added-images": ("added-image", "added-image-later"),
    "recordings": ("recording", "recording-later"),
    "repeated": ("repeats", "repeats-later"),
    "tile-beside-fleet": ("tile", "fleet"),
    "two-runs-a-side": ("repeats,repeats-2-later", "repeats-later,repeats-3-later"),
}
"""What is compared, the first of which is the baseline."""


def unpacked(name: str) -> list[str]:
    """The sides of `name`, or its one run, as commands take them; this state folder has their runs afterwards."""
    return [",".join(unpack(STORES[store]) for store in side.split(",")) for side in SIDES.get(name, (name,))]
