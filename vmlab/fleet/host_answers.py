"""What a host of a fleet answers: JSON whose every value is checked before the controller uses it."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from vmlab.model.errors import StoreError
from vmlab.model.event import Event
from vmlab.model.event_json import from_json
from vmlab.model.results import RawOutput
from vmlab.store.reader import SampleRow
from vmlab.store.sql_schema import raw_output

PROTOCOL = 1
LONGEST_LINE = 128 * 2**20
"""Of an answer, in bytes: what tools printed in one cell, in base64."""
MOST_ROWS = 500
_Word = Annotated[str, Field(max_length=4096)]
_Row = Annotated[int, Field(ge=0, lt=2**62)]
_Clock = Annotated[float, Field(allow_inf_nan=False, gt=-1e12, lt=1e12)]


def _blob(value: object) -> object:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except binascii.Error as error:
        raise ValueError("is not base64") from error


Blob = Annotated[bytes, BeforeValidator(_blob), Field(max_length=64 * 2**20)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Hello(_Answer):
    """Who answers."""

    protocol: int
    vmlab: _Word
    root: bool


class Clocks(_Answer):
    """Both clocks of the host, in seconds."""

    wall: _Clock
    mono: _Clock


class Verdict(_Answer):
    """One check of `vmlab doctor`."""

    name: _Word
    ok: bool
    required: bool
    detail: str = Field(max_length=65536)


class Condition(_Answer):
    """What a host has: doctor's checks, the image that its runs start from, its snapshots, and who measures there.

    `unknown_kinds` are those of workloads that were asked about and that it does not have, `lacking_packages` has the
    reasons for Debian's packages that it cannot get, by name.
    """

    checks: list[Verdict]
    image: _Word | None
    snapshots: int
    measuring: list[_Word]
    unknown_kinds: list[_Word] = Field(default=[], max_length=100)
    lacking_packages: dict[_Word, _Word] = Field(default={}, max_length=1000)


class Lacking(_Answer):
    """The names of the assets that are not there."""

    names: list[_Word] = Field(max_length=100)


class StartedCell(_Answer):
    """A cell of the host's plan."""

    index: _Row
    axes: dict[str, str | bool | int | float]
    repeat: int


class Started(_Answer):
    """The host's own run, with its cells."""

    run: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$")]
    cells: list[StartedCell] = Field(max_length=10000)


class EventRow(_Answer):
    """An event of the host's store."""

    row: _Row
    body: str = Field(max_length=16 * 2**20)

    def event(self) -> Event | None:
        """The event; None for a kind that is not known here. Raises StoreError."""
        try:
            return from_json(self.body)
        except (ValueError, TypeError) as error:
            raise StoreError(f"event {self.row} {error}") from error


class Layout(_Answer):
    """The names of a sample's values, and their units."""

    id: _Row
    names: list[Annotated[str, Field(min_length=1, max_length=4096)]]
    units: list[_Word]


class SampleOfHost(_Answer):
    """A sample of the host's store."""

    row: _Row
    layout: _Row
    wall: _Clock
    mono: _Clock
    body: Blob

    def packed(self) -> SampleRow:
        """As a store has it."""
        return SampleRow(self.row, self.layout, self.wall, self.mono, self.body)


class Rows(_Answer):
    """What is new in the host's store; `alive` is whether the run goes on."""

    events: list[EventRow] = Field(max_length=MOST_ROWS)
    seen: _Row
    layouts: list[Layout] = Field(max_length=10000)
    samples: list[SampleOfHost] = Field(max_length=MOST_ROWS)
    alive: bool


class RawOfHost(_Answer):
    """What a tool printed, compressed as in the store."""

    workload: _Word
    tile: int
    guest: _Word
    name: _Word
    body: Blob

    def output(self) -> RawOutput:
        """The text. Raises StoreError."""
        import zlib

        try:
            return raw_output(self.workload, self.tile, self.guest, self.name, self.body)
        except (ValueError, zlib.error) as error:
            raise StoreError(f"what {self.workload} printed: {error}") from error


class RawOfCell(_Answer):
    """All that tools printed in a cell."""

    raw: list[RawOfHost] = Field(max_length=100000)


class Cleaned(_Answer):
    """What `vmlab clean` did there."""

    removed: list[_Word]
    left: list[_Word]


class Done(_Answer):
    """Nothing but that it was done."""

    ok: Literal[True] = True
