"""Makes the recording that `vmlab demo` plays: ``python -m screenshots.recording [RUN | OPTION…]``, as root.

Without RUN it runs one tile to three, in two cache modes, on an emulated disk and an ordered host, and switches the
guests of the third cell while they work; further options, such as ``--allow-noise``, are those of ``vmlab run``. RUN,
as in ``vmlab show``, is a run that was recorded so already. The store is taken as it is, but for the names of folders:
those of the checkout and of the runs become those of an installation by root.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from vmlab.model.cell_event import PhaseStarted
from vmlab.model.errors import UsageError
from vmlab.model.places import shipped_scenarios, state_folder
from vmlab.model.run import Phase
from vmlab.report.demo.chapters import chapters_text, load_demo
from vmlab.report.demo.duration import BOOK, FOLDER
from vmlab.store.life import is_alive
from vmlab.store.reader import NotBegunError, RunReader
from vmlab.store.runs import STORE, resolve_run

VMLAB = [sys.executable, "-m", "vmlab"]
RUN = ["run", "consolidation", "--size", "demo", "--tiles", "1,2,3", "--wait", "--detach"]
SWITCHED_CELL = 3
"""Three tiles with cache none; they get the other mode while they work."""
SWITCHED_TO = "writeback"
SWITCH_AFTER_SECONDS = 30.0
PATIENCE_SECONDS = 1800.0


def record(options: list[str]) -> Path:
    """Run it, switch the last cell's guests, and wait for the end; the store of the run."""
    subprocess.run([*VMLAB, *RUN, *options], check=True)
    store = resolve_run("last")
    switched, end = False, time.monotonic() + PATIENCE_SECONDS
    while is_alive(store.parent):
        if time.monotonic() > end:
            raise UsageError(f"{store}: is not over after {PATIENCE_SECONDS:.0f} s")
        if not switched and _works(store):
            time.sleep(SWITCH_AFTER_SECONDS)
            subprocess.run([*VMLAB, "set", store.parent.name, f"cache={SWITCHED_TO}", "--now"], check=True)
            switched = True
        time.sleep(0.5)
    return store


def _works(store: Path) -> bool:
    """Whether the workloads of the cell that is to be switched have started."""
    try:
        with RunReader(store) as reader:
            return any(
                isinstance(event, PhaseStarted) and (event.cell, event.phase) == (SWITCHED_CELL, Phase.EXECUTE)
                for _, event in reader.events(kinds=(PhaseStarted,))
            )
    except NotBegunError:
        return False


def rename_folders(store: Path) -> None:
    """Write the folders of this machine in `store` as those that an installation by root has."""
    folders = {str(state_folder()): "/root/.local/state/vmlab", str(shipped_scenarios().parent): "/root/vmlab"}
    with closing(sqlite3.connect(store)) as connection, connection:
        for here, there in folders.items():
            for table in ("events", "documents"):
                connection.execute(f"UPDATE {table} SET body = replace(body, ?, ?)", (here, there))
    with closing(sqlite3.connect(store)) as connection:
        # What was overwritten is still in free pages otherwise.
        connection.execute("VACUUM")


def main(arguments: list[str]) -> None:
    """Take the recording into the package, and print what its chapters say of it."""
    is_run = arguments and not arguments[0].startswith("-")
    store = resolve_run(arguments[0]) if is_run else record(arguments)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as made:
        # The package's recording is replaced only once the chapters fit the new one.
        folder = Path(made)
        shutil.copy(FOLDER / BOOK, folder)
        with RunReader(store) as reader:
            reader.copy(folder / STORE)
        rename_folders(folder / STORE)
        told = chapters_text(load_demo(folder))
        (folder / STORE).replace(FOLDER / STORE)
    sys.stderr.write(f"{told}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
