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
PAIRS = {
    "added-images": ("added-image", "added-image-later"),
    "recordings": ("recording", "recording-later"),
    "repeated": ("repeats", "repeats-later"),
    "tile-beside-fleet": ("tile", "fleet"),
}
"""Runs that are compared, the first of which is the baseline."""


def unpacked(name: str) -> list[str]:
    """The ids of the runs of a store or a pair, which this state folder has afterwards."""
    return [unpack(STORES[store]) for store in PAIRS.get(name, (name,))]
