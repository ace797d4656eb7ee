"""What a run of a fleet was asked to be, kept in its folder beside the request of any run."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vmlab.fleet.hosts_file import HostEntry
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import StoreError
from vmlab.system.given_file import read_given
from vmlab.system.removal import named

_FILE = "fleet.json"
_MOST_BYTES = 2**20


class FleetRequest(BaseModel):
    """The hosts, and how cells are placed on them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    hosts: dict[str, HostEntry]
    spread: bool = False
    """Blocks are placed on any host; otherwise each cell has its host as an axis."""
    together: bool = False
    """Cells that differ in their host alone start together."""
    in_turn: bool = False
    """One host at a time measures a cell."""
    unlike: bool = False
    """Blocks may spread over hosts that are not alike."""
    reconnect: float = Field(default=60.0, gt=0)
    """For how many seconds a line that was cut is tried again."""
    hold: float = Field(default=600.0, gt=0)
    """For how many seconds a host's run waits for a further cell, before it ends by itself."""

    def write(self, folder: RunFolder) -> None:
        """Keep it in the run's folder. Raises OSError."""
        with named(folder.path / _FILE):
            (folder.path / _FILE).write_text(self.model_dump_json(indent=1), encoding="utf-8")


def is_fleet(folder: Path) -> bool:
    """Whether the run in this folder is one of a fleet."""
    return (folder / _FILE).is_file()


def read_fleet_request(folder: RunFolder) -> FleetRequest:
    """That of the run in `folder`. Raises UsageError and StoreError."""
    path = folder.path / _FILE
    try:
        return FleetRequest.model_validate_json(read_given(path, _MOST_BYTES))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise StoreError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
