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
    """An empty folder in `disks` for each of `tiles`, by the tile; see `marked_folder`."""
    with marked_folder(disks / _NAME, lab, journal) as folder:
        yield {tile: made_inside(folder, f"t{tile}") for tile in tiles}


@contextlib.contextmanager
def marked_folder(folder: Path, lab: str, journal: Journal) -> Iterator[Path]:
    """An empty folder for as long as the block runs; removed with all that is in it.

    It carries the lab's mark and stands in the journal while it is there. Raises OSError where it cannot be made or
    removed, and StoreError.
    """
    with journal.kept(JournalEntry("folder", str(folder))):
        make_marked(folder, lab)
        try:
            yield folder
        finally:
            remove_tree(folder)


def made_inside(above: Path, name: str) -> Path:
    """A new folder `name` in `above`, which anybody may read."""
    folder = above / name
    folder.mkdir()
    # As /data is in a guest, whatever the umask: a workload may give up root.
    folder.chmod(0o755)
    return folder
