"""The real runner with a hypervisor in memory and cells that take a while; it may be deaf to the wish to stop."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from tests.fakes.hypervisor import FakeHypervisor
from tests.lab.programs.faked_vmlab import roots
from tests.waiting import until
from vmlab.guests.image import Image
from vmlab.hypervisor.host_settings import SettingsKeeper, Tell
from vmlab.hypervisor.journal import Journal
from vmlab.lab import runner
from vmlab.lab.folder import RunFolder
from vmlab.lab.parts import RunnerParts
from vmlab.lab.surroundings import CellSurroundings
from vmlab.model.event import CellEnded, CellStarted, Notice
from vmlab.model.run import Outcome
from vmlab.plan.terms import CellPlan

CELL_SECONDS = "FAKED_CELL_SECONDS"
CELL_FILE = "FAKED_CELL_FILE"
"""Names a file: cells last until it is there, and `CELL_SECONDS` more."""
DEAF = "FAKED_DEAF"
HUNG = "hung"


class Cell:
    """A cell that waits, and says how a child of the runner meets signals."""

    def __init__(self, cell: CellPlan, around: CellSurroundings) -> None:
        self._cell = cell
        self._around = around

    async def run(self) -> Outcome:
        """Begin, wait, end."""
        cell = self._cell
        self._around.emit(CellStarted(cell=cell.index, axes=dict(cell.axes), repeat=cell.repeat, guests=0))
        child = await asyncio.create_subprocess_exec("cat", "/proc/self/status", stdout=asyncio.subprocess.PIPE)
        status = (await child.communicate())[0].decode()
        masks = [line for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn"))]
        self._around.emit(Notice(level="info", text=" ".join(masks)))
        if os.environ.get(DEAF) == HUNG:
            # The event loop stands: no signal is heeded, no command answered.
            time.sleep(600)
        if CELL_FILE in os.environ:
            await until(Path(os.environ[CELL_FILE]).exists, "the file that ends cells", deadline=3600)
        await asyncio.sleep(float(os.environ.get(CELL_SECONDS, "3600")))
        self._around.emit(CellEnded(cell=cell.index, outcome="passed", reasons=[], wall_seconds=1.0, start_skew_ms=0.0))
        return Outcome.PASSED


def no_image(folder: Path) -> Image:
    """An image without files: there is nothing in it to compare."""
    return Image("faked", folder, folder, folder, folder, "", folder, {})


def settings_keeper(folder: RunFolder, tell: Tell, warn: Tell) -> SettingsKeeper:
    """The host's settings, of the /sys that a test has."""
    return SettingsKeeper(Journal(folder.journal), folder.disks, tell, warn, roots())


def made(*_arguments: Any, **_options: Any) -> FakeHypervisor:
    """In place of libvirt."""
    return FakeHypervisor()


if __name__ == "__main__":
    patched: Any = runner
    patched.CellRun = Cell
    patched.load_image = no_image
    if os.environ.get(DEAF) == "1":
        patched.Runner.stop = lambda *_: None
    runner.main(RunnerParts(hypervisor=made, settings_keeper=settings_keeper))
