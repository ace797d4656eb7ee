"""Where workloads on the host have their files: a folder for each tile, beside the guests' disks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.system.marks import make_marked
from vmlab.system.removal import remove_tree

_NAME = "host.data"


@contextlib.contextmanager
def host_data(disks: Path, lab: str, journal: Journal, tiles: Iterable[int]) -> Iterator[dict[int, Path]]:
    """An empty folder in `disks` for each of `tiles`, by the tile; removed with all that is in them after the block.

    They lie in one folder that carries the lab's mark and stands in the journal while it is there. Raises OSError where
    they cannot be made or removed, and StoreError.
    """
    folder = disks / _NAME
    with journal.kept(JournalEntry("folder", str(folder))):
        make_marked(folder, lab)
        try:
            yield {tile: _made(folder / f"t{tile}") for tile in tiles}
        finally:
            remove_tree(folder)


def _made(folder: Path) -> Path:
    folder.mkdir()
    # As /data is in a guest, whatever the umask: a workload may give up root.
    folder.chmod(0o755)
    return folder
