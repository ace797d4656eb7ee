"""The hosts of a fleet: the file that names them, those that a command is given, and what a run was asked of them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import StoreError, UsageError
from vmlab.model.names import MOST_HOSTS, is_host_name
from vmlab.model.units import Seconds
from vmlab.system.given_file import read_given
from vmlab.system.removal import named

EVERY = "all"
"""Stands for every host of the file."""
_MOST_BYTES = 2**20


def hosts_file() -> Path:
    """The file of hosts; follows ``XDG_CONFIG_HOME``."""
    return platformdirs.user_config_path("vmlab") / "hosts.toml"


def _path(value: object) -> object:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError("needs the path of a file")
    return str(Path(value).expanduser())


_File = Annotated[Path, Field(strict=False), BeforeValidator(_path)]


class HostEntry(BaseModel):
    """How a host is reached. All keys but `address` may be left out."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    address: Annotated[str, Field(min_length=1, max_length=253)]
    """Name or address."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    """Port of its SSH server."""
    user: Annotated[str, Field(min_length=1, max_length=64)] = "root"
    """Who logs in; root, or who becomes root by `vmlab`, as in ``sudo -n vmlab``."""
    key: _File | None = None
    """Private key; without one, those of ~/.ssh and of the agent."""
    known_hosts: _File = Path("~/.ssh/known_hosts").expanduser()
    """File with the keys of hosts; no other key is accepted."""
    vmlab: Annotated[str, Field(min_length=1, max_length=1000)] = "vmlab"
    """The program there, with words before it where it needs any."""


class Waiting(BaseModel):
    """How long a fleet waits."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    reconnect: Seconds = 60.0
    """For how long a line that was cut is tried again, such as 60 s."""
    hold: Seconds = 600.0
    """For how long a host's run waits for a further cell, before it ends by itself, such as 10 min."""


class HostsFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    hosts: dict[str, HostEntry] = Field(default_factory=dict, max_length=MOST_HOSTS)
    waiting: Waiting = Waiting()


def read_hosts(path: Path | None = None) -> HostsFile:
    """The file, empty where there is none. Raises UsageError, with file and key."""
    path = path or hosts_file()
    if not path.exists():
        return HostsFile()
    try:
        body = tomllib.loads(read_given(path, _MOST_BYTES).decode("utf-8"))
    except RecursionError:
        raise UsageError(f"{path}: is nested too deep") from None
    except ValueError as error:
        # Of a number of thousands of digits Python's own.
        raise UsageError(f"{path}: {error}") from error
    for name in body.get("hosts", {}) if isinstance(body.get("hosts", {}), dict) else ():
        if not is_host_name(name) or name == EVERY:
            raise UsageError(
                f"{path}: hosts.{name[:64]}: a name has letters, digits, dots and dashes, and is not {EVERY}"
            )
    try:
        return HostsFile.model_validate(body)
    except ValidationError as error:
        raise UsageError(f"{path}: {_words(error.errors(include_url=False)[0])}") from error


_KEYS: dict[tuple[object, int], type[BaseModel]] = {("hosts", 3): HostEntry, ("waiting", 2): Waiting}
"""The part of the file that a key belongs to, by its first word and its depth."""


def _words(problem: Any) -> str:
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        known = ", ".join(_KEYS.get((problem["loc"][0], len(problem["loc"])), HostsFile).model_fields)
        return f"{key}: unknown key; known are {known}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    return f"{key}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def chosen_hosts(asked: Sequence[str], path: Path | None = None) -> dict[str, HostEntry]:
    """The hosts that are `asked` for, by name: those of the file, and addresses that it does not have, with the usual
    keys; `EVERY` means all of the file. Raises UsageError.
    """
    path = path or hosts_file()
    known = read_hosts(path).hosts
    if list(asked) == [EVERY]:
        if not known:
            raise UsageError(f"{path} names no host; write it, or name hosts, as in --hosts hv1,hv2")
        return known
    found: dict[str, HostEntry] = {}
    for name in asked:
        if name in found:
            raise UsageError(f"--hosts: {name} is named twice")
        if not is_host_name(name):
            raise UsageError(f"--hosts: {name[:64]!r} is no name of a host")
        found[name] = known[name] if name in known else HostEntry(address=name)
    return found


_FILE = "fleet.json"


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
