"""At most one measuring run on a host, of any user and state folder, because two would disturb each other.

Each run holds a lock on a file of its own in one folder of the host, from before its image is built until its last
process is gone; the kernel frees it even after a kill. Files whose lock is free belong to runs that are over.

Those that wait for their turn have files in the same way, in the folder's `queue`; see `waiting_runs`. Whoever starts
without waiting comes behind all that wait, and is refused; only a concurrent run does not.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError, in_one_line
from vmlab.model.jsonable import picked
from vmlab.model.quantities import about_seconds
from vmlab.system.descriptors import closed_after
from vmlab.system.file_system import flock
from vmlab.system.processes import is_stopped
from vmlab.system.removal import named, remove_empty_folder, remove_file
from vmlab.system.rights import user_name

# The folder must be the same one for all, so no variable moves it. By way of PID 1 it is found from mount namespaces
# that have a /run of their own too.
RUN_FOLDERS = (Path("/proc/1/root/run"), Path("/run"))
_NAME = "vmlab-measuring"
QUEUE = "queue"
"""The folder in it with the files of those that wait; a run's name begins with its date."""
_LONGEST = 4096
_GATE_SECONDS = 10.0
_Run = TypeVar("_Run", "MeasuringRun", "WaitingRun")


@dataclass(frozen=True, slots=True)
class MeasuringRun:
    """A run that measures on this host now.

    `launcher` is its pid on the host, `folder` the folder of its record, `since` the wall clock when it began and
    `began` the monotonic one; 0 where that is not known. `planned` are the seconds that it is estimated to take.
    """

    run: str
    user: str
    launcher: int
    folder: str
    since: float = 0.0
    began: float = 0.0
    planned: float | None = None

    def __str__(self) -> str:
        return f"run {self.run} of {self.user} (process {self.launcher})"

    def in_full(self) -> str:
        """With the time of its start, its estimate and the folder of its record, where these are known."""
        began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        parts = [str(self)]
        parts += ["whose process is stopped"] if is_stopped(self.launcher) else []
        parts += [f"started {began}"] if self.since else []
        parts += [] if self.planned is None else [f"planned for {about_seconds(self.planned)}"]
        return ", ".join([*parts, *([f"in {self.folder}"] if self.folder else [])])

    @property
    def left(self) -> float | None:
        """Seconds until its estimated end, 0 where that has passed; None without an estimate."""
        return None if self.planned is None else max(0.0, self.began + self.planned - time.monotonic())


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits for its turn on this host, or has it and starts.

    `number` is its place in the order. `name` is that of its scenario, or the id of a run that is to go on. `process`
    waits, and was started `born` clock ticks after boot. `planned` are the seconds that it is estimated to take.
    """

    number: int
    name: str
    user: str
    process: int
    born: int = 0
    planned: float | None = None

    def __str__(self) -> str:
        return f"{self.name} of {self.user} (process {self.process})"

    @property
    def stopped(self) -> bool:
        """Whether its process is stopped, and can take no turn."""
        return is_stopped(self.process, self.born)


@dataclass(frozen=True, slots=True)
class Turn:
    """The place in the order of a run that waits, and the places before it that it passes over, as they are idle."""

    number: int
    idle: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class HostQueue:
    """What measures on this host, and what waits for its turn, in order, apart from what is passed over."""

    measuring: tuple[MeasuringRun, ...] = ()
    waiting: tuple[WaitingRun, ...] = ()
    passed_over: tuple[WaitingRun, ...] = ()

    def before(self, turn: Turn | None) -> tuple[WaitingRun, ...]:
        """Those that wait before `turn`; all for one that does not wait."""
        return tuple(one for one in self.waiting if turn is None or one.number < turn.number)

    def begins(self, place: int) -> float | None:
        """Estimated seconds until the one at `place`, from 1, begins; None where one before it has no estimate."""
        measuring = [run.left for run in self.measuring]
        before = [run.planned for run in self.waiting[: place - 1]]
        if None in measuring or None in before:
            return None
        return max(filter(None, measuring), default=0.0) + sum(filter(None, before))

    def document(self) -> list[dict[str, Any]]:
        """Those that wait, in order, for other programs."""
        return [
            {"place": place, **picked(one, "name", "user", "process"), "begins_in_seconds": self.begins(place)}
            for place, one in enumerate(self.waiting, 1)
        ]


class HostBusy(RefusedError):
    """Another run measures on this host, or waits for its turn; nothing was started."""

    def __init__(
        self, others: Sequence[MeasuringRun], waiting: Sequence[WaitingRun] = (), *, remedy: str | None = None
    ) -> None:
        self.others, self.waiting = others, waiting
        if others:
            verb = "measures" if len(others) == 1 else "measure"
            words = f"{' and '.join(map(str, others))} {verb} on this host now, and runs at once measure each other"
        else:
            verb = "waits for its" if len(waiting) == 1 else "wait for their"
            words = f"{' and '.join(map(str, waiting))} {verb} turn on this host, and came first"
        super().__init__(
            words,
            remedy=remedy
            or "`--wait` waits for its turn, `--concurrent` measures at the same time and notes it on both",
        )

    def remedied(self, remedy: str) -> HostBusy:
        """The same for a caller without these options, with what there is to do instead."""
        return HostBusy(self.others, self.waiting, remedy=remedy)


class GateHeld(RefusedError):
    """Another start does not come to its end."""


def claim(
    folder: RunFolder, *, planned: float | None = None, concurrent: bool = False, turn: Turn | None = None
) -> int:
    """Enter the run among those that measure on this host; the descriptor that holds its place.

    `planned` are the seconds that it is estimated to take. Raises HostBusy unless it is the only one and nobody waits
    before its `turn`, or it is `concurrent`; RefusedError where the folder cannot be read or written.
    """
    try:
        with gate() as place:
            found = look(place, turn, clear=True)
            if not concurrent:
                _demand_turn(found, turn)
            return _entry(place, folder, planned)
    except OSError as error:
        raise RefusedError(f"cannot enter the run among those that measure: {in_one_line(error)}") from error


def _entry(place: Path, folder: RunFolder, planned: float | None) -> int:
    """Make the run's file in `place`."""
    run = MeasuringRun(folder.id, user(), os.getpid(), str(folder.path), time.time(), time.monotonic(), planned=planned)
    try:
        return make_entry(place / folder.id, run)
    except FileExistsError:
        raise RefusedError(f"another run is called {folder.id} too", remedy="start it once more") from None


def make_entry(path: Path, run: MeasuringRun | WaitingRun) -> int:
    """Make a file that holds `run`, locked and written; its descriptor. On an error it is removed again."""
    entry = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with named(path):
            flock(entry, fcntl.LOCK_EX, path)
            write_entry(entry, run)
    except BaseException:
        remove_file(path)
        os.close(entry)
        raise
    return entry


def refuse_beside_others(turn: Turn | None = None) -> None:
    """Raise HostBusy while a run measures on this host, or one waits that comes before `turn`. Another one may still
    begin right afterwards; only `claim` excludes that.
    """
    _demand_turn(look_here(turn), turn)


def _demand_turn(found: HostQueue, turn: Turn | None) -> None:
    if found.measuring or found.before(turn):
        raise HostBusy(found.measuring, found.before(turn))


def look_here(turn: Turn | None = None) -> HostQueue:
    """As `look`, in this host's folder. Raises RefusedError without the right to."""
    return look(_folder(), turn)


def look(place: Path, turn: Turn | None = None, *, clear: bool = False) -> HostQueue:
    """What measures and waits on the host of the folder `place`, as `turn` has it. For `clear` see `_held`."""
    measuring = tuple(_living(place, clear=clear))
    waiting = _waiting(place, clear=clear)
    over = [one for one in waiting if one.stopped or (turn is not None and one.number in turn.idle)]
    return HostQueue(measuring, tuple(one for one in waiting if one not in over), tuple(over))


def host_queue() -> HostQueue:
    """What measures and waits on this host, as far as this user may know; makes nothing."""
    for place in (parent / _NAME for parent in RUN_FOLDERS):
        with contextlib.suppress(OSError, RefusedError):
            if place.is_dir():
                return look(place)
    return HostQueue()


def note_launcher(entry: int) -> None:
    """Write down the calling process as the owner of the run's file."""
    write_entry(entry, MeasuringRun(**{**json.loads(os.pread(entry, _LONGEST, 0)), "launcher": os.getpid()}))


def leave(run: str) -> None:
    """Remove the file of a run that ends. After a kill, the next `claim` or `clear_dead` removes it."""
    with contextlib.suppress(OSError, RefusedError), gate() as place:
        remove_file(place / run)
        _clear(place)


def clear_dead() -> None:
    """Remove the files of all runs that are over, and of those that do not wait any more, where this user may."""
    with contextlib.suppress(OSError, RefusedError), gate() as place:
        _clear(place)


def _clear(place: Path) -> None:
    look(place, clear=True)
    remove_empty_folder(place / QUEUE)
    remove_empty_folder(place)


def measuring_place() -> int:
    """A descriptor of the folder, for a process that enters namespaces in which its path does not exist."""
    return os.open(_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def others_measuring(place: int, own: str) -> list[MeasuringRun]:
    """The runs beside the run `own` that measure now; `place` is from `measuring_place`."""
    return [run for run in _living(Path(f"/proc/self/fd/{place}")) if run.run != own]


def _folder() -> Path:
    """The folder, made where it is missing. Raises RefusedError without the right to."""
    trouble: OSError | None = None
    for place in (parent / _NAME for parent in RUN_FOLDERS):
        try:
            place.mkdir(mode=0o700)
        except FileExistsError as error:
            # If it was removed in the meantime, that does no harm: entering checks again.
            if place.is_dir() or not place.exists():
                return place
            trouble = error
        except OSError as error:
            trouble = error
        else:
            return place
    why = trouble.strerror if trouble else ""
    raise RefusedError(f"cannot tell whether another run measures: {trouble and trouble.filename}: {why}") from trouble


@contextlib.contextmanager
def gate() -> Iterator[Path]:
    """The folder, locked: one process at a time may list the runs in it, enter and leave.

    Raises GateHeld where another process does not give the lock up.
    """
    end = time.monotonic() + _GATE_SECONDS
    while (folder := _entered(place := _folder())) is None:
        if time.monotonic() > end:
            raise GateHeld(f"another start does not come to its end: it holds {place}")
        time.sleep(0.02)
    with closed_after(folder):
        yield place


def _entered(place: Path) -> int | None:
    """The descriptor of the lock; None while another process has it, or where the file was removed meanwhile."""
    with contextlib.suppress(BlockingIOError, FileNotFoundError), contextlib.ExitStack() as closing:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        closing.callback(os.close, folder)
        flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB, place)
        if os.fstat(folder).st_ino == place.stat().st_ino:
            closing.pop_all()
            return folder
    return None


def _living(place: Path, *, clear: bool = False) -> Iterator[MeasuringRun]:
    """The runs that measure, by name. For `clear` see `_held`."""
    for name, text in _held(place, clear=clear):
        yield _read(MeasuringRun, text, run=name, user="somebody", launcher=0, folder="")


def _waiting(place: Path, *, clear: bool = False) -> list[WaitingRun]:
    """The runs that wait, in order. For `clear` see `_held`."""
    found = (
        replace(_read(WaitingRun, text, number=0, name="a run", user="somebody", process=0), number=int(name))
        for name, text in _held(place / QUEUE, clear=clear)
        if name.isdecimal()
    )
    return sorted(found, key=lambda one: one.number)


def _held(place: Path, *, clear: bool) -> Iterator[tuple[str, bytes]]:
    """Name and text of each file in `place` whose lock is held; with `clear`, which needs the gate, the others are
    removed.
    """
    for name in _names(place):
        path = place / name
        try:
            entry = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        with closed_after(entry):
            try:
                flock(entry, fcntl.LOCK_SH | fcntl.LOCK_NB, path)
                if clear:
                    with contextlib.suppress(OSError):
                        remove_file(path)
            except BlockingIOError:
                yield name, os.pread(entry, _LONGEST, 0)


def _names(place: Path) -> list[str]:
    """The names of what is in `place`, apart from the queue."""
    try:
        return sorted(path.name for path in place.iterdir() if path.name != QUEUE)
    except FileNotFoundError:
        return []


def write_entry(entry: int, run: MeasuringRun | WaitingRun) -> None:
    os.pwrite(entry, json.dumps(asdict(run)).encode().ljust(_LONGEST), 0)


def _read(kind: type[_Run], text: bytes, **otherwise: Any) -> _Run:
    """What a file says, without what only another version knows; `otherwise` while its owner is still writing it."""
    try:
        said = json.loads(text)
        return kind(**{field.name: said[field.name] for field in fields(kind) if field.name in said})
    except (ValueError, TypeError):
        return kind(**otherwise)


def user() -> str:
    """Who started the run: all run as root, so this is the name before sudo."""
    return os.environ.get("SUDO_USER") or user_name(os.getuid())
