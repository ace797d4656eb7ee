"""The real controller as commands start it, over hosts without SSH and without guests: ``RUN FOLDER``."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from tests.fleet.local_hosts import LocalFleet
from vmlab.fleet import controller

FLEET = "FAKED_FLEET"
"""JSON: the `place` of the hosts, the `load` of some of them, and what is `hidden` from some, as in `LocalHost`."""


def main() -> None:
    """Carry out the run that was prepared."""
    said = json.loads(os.environ[FLEET])
    fleet = LocalFleet.at(Path(said["place"]))
    for name, load in said["load"].items():
        fleet.hosts[name].load = json.dumps(load)
    for name, folder in said["hidden"].items():
        fleet.hosts[name].hidden = Path(folder)
    faked: Any = controller
    faked.Controller = partial(controller.Controller, connect=fleet.connect)
    controller.main()


if __name__ == "__main__":
    main()
