"""The verbs on a run that goes on: each names its fields, what of the run does it, and is said over the run's socket.

One JSON line goes in and one comes out. Imports no hypervisor, no SSH and no pydantic, as small commands say verbs too.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.checked import Condition
from vmlab.model.errors import CommandFailed, ExitCode, RefusedError, UsageError, VmlabError
from vmlab.model.event_fields import CellToCome

if TYPE_CHECKING:
    from vmlab.lab.commands.coming_cells import ComingCells
    from vmlab.lab.commands.released_cells import ReleasedCells

_LONGEST_ANSWER = 64 * 2**20
"""The list of thousands of cells to come has a few hundred bytes for each."""
_STOPS = Condition(lambda name: name in ("SIGINT", "SIGTERM"))
_MOMENT = Condition(lambda mono: 0 < mono < 1e12)
_REASON = Condition(lambda reason: len(reason) <= 1000)
_FAILURES: dict[int, type[VmlabError]] = {ExitCode.FAILED: CommandFailed, ExitCode.REFUSED: RefusedError}
"""The error that a refusal becomes for who asked, by its exit code; any other is one of usage."""


class NotListening(UsageError):
    """No runner listens at the socket: it has not started yet, or has ended."""


class NotAnswering(UsageError):
    """The runner exists but does not answer: it was stopped (SIGSTOP) or hangs."""


class SharedStart(Protocol):
    """The common start of a cell that other hosts run too."""

    def start_at(self, cell: int, mono: float) -> None:
        """Take the moment. Raises UsageError for another cell."""

    def call_off(self, cell: int, reason: str) -> None:
        """End the cell as failed. Raises UsageError for another cell."""


class Obeying:
    """A run to which verbs are said. What it does not have, or may not change, it refuses with UsageError."""

    coming: ComingCells
    """The cells to come."""

    async def obey(self, verb: Verb) -> Mapping[str, Any]:
        """Carry out a verb; the answer as JSON values. Raises VmlabError to refuse."""
        return await verb.obey(self)

    def stop(self, code: ExitCode, origin: str) -> None:
        """Stop, with clean-up; a second call changes nothing."""
        raise NotImplementedError

    def demand_changeable(self) -> None:
        """Raise UsageError for a run whose cells stay as they are planned."""

    def held_cells(self) -> ReleasedCells:
        """The cells that begin as they are released."""
        raise UsageError("this run is not held: its cells begin by themselves")

    def shared_start(self) -> SharedStart:
        """Of the cell that runs."""
        raise UsageError("no cell runs that other hosts run too")

    async def change_now(self, what: str, value: str | int, origin: str) -> Mapping[str, Any]:
        """Change one thing of the cell that runs. Raises UsageError, RefusedError and CommandFailed."""
        raise UsageError("no cell runs now")


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One thing that a run is asked for; `origin` is who asks, in words for people."""

    command: ClassVar[str]
    patience: ClassVar[float] = 10.0
    """Seconds within which the run answers."""
    origin: str = "vmlab"

    def said(self) -> dict[str, Any]:
        """The fields that say something, as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def ask(self, folder: RunFolder) -> dict[str, Any]:
        """Have a run do it; its answer. Raises what `send` raises, UsageError for one that is over or takes none now,
        RefusedError for one of another user.
        """
        folder.demand_commandable()
        if not folder.control.exists():
            raise UsageError(f"run {folder.id} takes no commands: it is starting or ending")
        return self.send(folder.control, self.patience)

    def send(self, path: Path, deadline: float = 10.0) -> dict[str, Any]:
        """Say it at a socket, and wait `deadline` seconds for the answer.

        Raises NotListening, NotAnswering, and with the runner's message UsageError or RefusedError when it refuses, and
        CommandFailed when it could not do it.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(deadline)
            try:
                connection.connect(str(path))
            except TimeoutError as error:
                raise NotAnswering(f"the runner does not answer: {error}") from error
            except OSError as error:
                raise NotListening(f"the runner does not answer: {error}") from error
            try:
                connection.sendall(json.dumps({"command": self.command, **self.said()}).encode() + b"\n")
                with connection.makefile("rb") as answer:
                    line = answer.readline(_LONGEST_ANSWER + 1)
                    if len(line) > _LONGEST_ANSWER:
                        raise ValueError("its answer is too long")
                    body: dict[str, Any] = json.loads(line)
            except (OSError, ValueError, RecursionError) as error:
                raise NotAnswering(f"the runner does not answer: {error}") from error
        if not body.get("ok"):
            failure = _FAILURES.get(body.get("exit_code", ExitCode.USAGE), UsageError)
            raise failure(str(body.get("error", "refused")))
        return body

    async def obey(self, run: Obeying) -> Mapping[str, Any]:
        """Do it; the answer as JSON values. Raises VmlabError to refuse."""
        self.act(run)
        return {}

    def act(self, run: Obeying) -> None:
        """Do what has no answer."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Stop(Verb):
    """End the run as this signal would."""

    command = "stop"
    signal: Annotated[str, _STOPS] = "SIGINT"

    def act(self, run: Obeying) -> None:
        run.stop(ExitCode.of_signal(Signals[self.signal]), self.origin)


@dataclass(frozen=True, kw_only=True)
class Release(Verb):
    """Let the cell with this number begin, in a run that is held; without one, let the run end."""

    command = "release"
    cell: int | None = None
    together: bool = False
    """Its workloads wait for the moment that `StartAt` gives."""

    def act(self, run: Obeying) -> None:
        run.held_cells().release(self.cell, together=self.together)


@dataclass(frozen=True, kw_only=True)
class Keep(Verb):
    """Say to a run that is held that whoever releases its cells is still there."""

    command = "keep"

    def act(self, run: Obeying) -> None:
        run.held_cells().keep()


@dataclass(frozen=True, kw_only=True)
class StartAt(Verb):
    """Give the moment at which the workloads of a cell start, by the host's monotonic clock."""

    command = "start"
    cell: int
    mono: Annotated[float, _MOMENT]

    def act(self, run: Obeying) -> None:
        run.shared_start().start_at(self.cell, self.mono)


@dataclass(frozen=True, kw_only=True)
class CallOff(Verb):
    """End a cell as failed, which other hosts run at the same time; the run goes on."""

    command = "call-off"
    cell: int
    reason: Annotated[str, _REASON]

    def act(self, run: Obeying) -> None:
        run.shared_start().call_off(self.cell, self.reason)


@dataclass(frozen=True, kw_only=True)
class ListComing(Verb):
    """List the cells to come; the answer has as `coming` all of them, as `cells` those that are not skipped."""

    command = "coming"

    async def obey(self, run: Obeying) -> Mapping[str, Any]:
        return run.coming.listed()


@dataclass(frozen=True, kw_only=True)
class _Change(Verb):
    """Change cells: what can have another value is in `AXES`, what is said in one word in `WORDS`, with its field."""

    command = "set"
    AXES: ClassVar[tuple[str, ...]]
    WORDS: ClassVar[dict[str, str]]

    @property
    def values(self) -> dict[str, str | int]:
        """The new values by axis."""
        return {name: value for name, value in self.said().items() if name in self.AXES}


@dataclass(frozen=True, kw_only=True)
class ChangeComing(_Change):
    """Change all cells to come, or the one with the number `cell`; the answer is that of `ListComing`."""

    AXES = ("cache", "tiles")
    WORDS: ClassVar = {"skip": "skip", "planned": "as_planned"}
    now: bool = False
    cell: int | None = None
    cache: str | None = None
    tiles: int | None = None
    skip: bool = False
    as_planned: bool = False

    async def obey(self, run: Obeying) -> Mapping[str, Any]:
        run.demand_changeable()
        return run.coming.change(self)


@dataclass(frozen=True, kw_only=True)
class ChangeRunning(_Change):
    """Change one thing of the cell that runs.

    A switch is done when it is answered, with the fields of its event and `what` was switched; a change of a loop's
    tiles (`cell`, `before`, `after`), or its end (`cell`, `ended`), has begun.
    """

    AXES = ("cache", "ksm", "tiles")
    WORDS: ClassVar = {"end": "end"}
    # Dirty pages are written before running guests are switched, for at most half a minute; the rest is for the guests.
    patience = 180.0
    now: bool = True
    cache: str | None = None
    ksm: str | None = None
    tiles: int | None = None
    end: bool = False

    async def obey(self, run: Obeying) -> Mapping[str, Any]:
        run.demand_changeable()
        asked = [(name, value) for name, value in self.said().items() if name not in ("origin", "now")]
        if len(asked) != 1:
            known = f"{', '.join(self.AXES[:-1])} or {self.AXES[-1]}"
            raise UsageError(f"of a cell that runs {known} can be changed, one at a time, and a loop be ended")
        ((what, value),) = asked
        return await run.change_now(what, value, self.origin)


WORDS = ChangeComing.WORDS | ChangeRunning.WORDS
VERBS: tuple[type[Verb], ...] = (Stop, Release, Keep, StartAt, CallOff, ListComing, ChangeComing, ChangeRunning)


def coming_document(folder: RunFolder, cells: list[CellToCome]) -> dict[str, Any]:
    """The cells to come of a run, as the document ``vmlab.coming/1``."""
    return {"schema": "vmlab.coming/1", "run": folder.id, "cells": cells}
