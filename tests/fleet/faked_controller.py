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
"""JSON: the `place` of the hosts; of some the `load`, what is `hidden` and the `packages`, as in `LocalHost`."""


def named_fleet() -> LocalFleet:
    """The hosts that the environment names."""
    said = json.loads(os.environ[FLEET])
    fleet = LocalFleet.at(Path(said["place"]))
    for name, load in said.get("load", {}).items():
        fleet.hosts[name].load = json.dumps(load)
    for name, folder in said.get("hidden", {}).items():
        fleet.hosts[name].hidden = Path(folder)
    for name, folder in said.get("packages", {}).items():
        fleet.hosts[name].packages = Path(folder)
    return fleet


def main() -> None:
    """Carry out the run that was prepared."""
    faked: Any = controller
    faked.Controller = partial(controller.Controller, connect=named_fleet().connect)
    controller.main()


if __name__ == "__main__":
    main()
