"""A controller over local hosts as a process of its own, which a test can kill: ``PLACE FOLDER SECONDS``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.fleet.local_hosts import LocalFleet
from vmlab.lab.process.run_folder import RunFolder


def main() -> None:
    """Carry out the run in FOLDER over the hosts in PLACE, whose cells take SECONDS."""
    fleet = LocalFleet.at(Path(sys.argv[1]), float(sys.argv[3]))
    folder = Path(sys.argv[2])
    asyncio.run(fleet.carried_out(RunFolder(folder.name, folder)))


if __name__ == "__main__":
    main()
