"""At most one measuring run on a host, of any user and state folder, because two would disturb each other.

Each run holds a lock on a file of its own in one folder of the host, from before its image is built until its last
process is gone; the kernel frees it even after a kill. Files whose lock is free belong to runs that are over.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError, in_one_line
from vmlab.model.quantities import about_seconds
from vmlab.system.file_system import flock
from vmlab.system.naming import named
from vmlab.system.removal import remove_empty_folder, remove_file
from vmlab.system.user_names import user_name

# The folder must be the same one for all, so no variable moves it. By way of PID 1 it is found from mount namespaces
# that have a /run of their own too.
RUN_FOLDERS = (Path("/proc/1/root/run"), Path("/run"))
_NAME = "vmlab-measuring"
_LONGEST = 4096
_GATE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class MeasuringRun:
    """A run that measures on this host now.

    `launcher` is its pid on the host, `folder` the folder of its record, `since` the wall clock when it began; 0 where
    that is not known.
    """

    run: str
    user: str
    launcher: int
    folder: str
    since: float = 0.0

    def __str__(self) -> str:
        return f"run {self.run} of {self.user} (process {self.launcher})"

    def in_full(self, planned: float | None = None) -> str:
        """With the time of its start and the folder of its record, where these are known, and its `planned` seconds."""
        began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        parts = [str(self)]
        parts += [f"started {began}"] if self.since else []
        parts += [] if planned is None else [f"planned for {about_seconds(planned)}"]
        return ", ".join([*parts, *([f"in {self.folder}"] if self.folder else [])])


class HostBusy(RefusedError):
    """Another run measures on this host; nothing was started."""

    def __init__(self, others: list[MeasuringRun]) -> None:
        self.others = others
        verb = "measures" if len(others) == 1 else "measure"
        super().__init__(
            f"{' and '.join(map(str, others))} {verb} on this host now, and runs at once measure each other",
            remedy="`run --wait` waits for the end, `run --concurrent` measures at the same time and notes it on both",
        )


def claim(folder: RunFolder, *, concurrent: bool = False) -> int:
    """Enter the run among those that measure on this host; the descriptor that holds its place.

    Raises AnotherMeasures unless it is the only one or `concurrent`, RefusedError where the folder cannot be read or
    written.
    """
    try:
        with _gate() as place:
            return _entry(place, folder, concurrent)
    except OSError as error:
        raise RefusedError(f"cannot enter the run among those that measure: {in_one_line(error)}") from error


def _entry(place: Path, folder: RunFolder, concurrent: bool) -> int:
    """Make the run's file in `place`, locked and written; on an error it is removed again."""
    others = list(_living(place, clear=True))
    if others and not concurrent:
        raise HostBusy(others)
    path = place / folder.id
    try:
        entry = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise RefusedError(f"another run is called {folder.id} too", remedy="start it once more") from None
    try:
        with named(path):
            flock(entry, fcntl.LOCK_EX, path)
            _write(entry, MeasuringRun(folder.id, _user(), os.getpid(), str(folder.path), time.time()))
    except BaseException:
        remove_file(path)
        os.close(entry)
        raise
    return entry


def refuse_beside_others() -> None:
    """Raise AnotherMeasures while a run measures on this host. Another one may still begin right afterwards; only
    `claim` excludes that.
    """
    if others := list(_living(_folder())):
        raise HostBusy(others)


def note_launcher(entry: int) -> None:
    """Write down the calling process as the owner of the run's file."""
    _write(entry, MeasuringRun(**{**json.loads(os.pread(entry, _LONGEST, 0)), "launcher": os.getpid()}))


def leave(run: str) -> None:
    """Remove the file of a run that ends. After a kill, the next `claim` or `clear_dead` removes it."""
    with contextlib.suppress(OSError, RefusedError), _gate() as place:
        remove_file(place / run)
        remove_empty_folder(place)


def clear_dead() -> None:
    """Remove the files of all runs that are over, where this user may."""
    with contextlib.suppress(OSError, RefusedError), _gate() as place:
        list(_living(place, clear=True))
        remove_empty_folder(place)


def wait_for_end(run: MeasuringRun) -> None:
    """Return when `run` does not measure any more."""
    try:
        path = _folder() / run.run
        entry = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        flock(entry, fcntl.LOCK_SH, path)
    finally:
        os.close(entry)


def waiting_for(run: MeasuringRun) -> int:
    """How many processes wait for the end of `run` now, as far as the kernel shows them."""
    try:
        found = (_folder() / run.run).stat()
        locks = Path("/proc/locks").read_text()
    except (OSError, RefusedError):
        return 0
    file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return sum(words[1] == "->" and file in words for line in locks.splitlines() if len(words := line.split()) > 2)


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
def _gate() -> Iterator[Path]:
    """The folder, locked: one process at a time may list the runs in it, enter and leave.

    Raises RefusedError where another process does not give the lock up.
    """
    end = time.monotonic() + _GATE_SECONDS
    while (folder := _entered(place := _folder())) is None:
        if time.monotonic() > end:
            raise RefusedError(f"another start does not come to its end: it holds {place}")
        time.sleep(0.02)
    try:
        yield place
    finally:
        os.close(folder)


def _entered(place: Path) -> int | None:
    """The descriptor of the lock; None while another process has it, or where the file was removed meanwhile."""
    try:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB, place)
        if os.fstat(folder).st_ino == place.stat().st_ino:
            return folder
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(folder)
        raise
    os.close(folder)
    return None


def _living(place: Path, *, clear: bool = False) -> Iterator[MeasuringRun]:
    """The runs whose lock is held; with `clear`, which needs the gate, the files of the others are removed."""
    for name in _names(place):
        path = place / name
        try:
            entry = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            flock(entry, fcntl.LOCK_SH | fcntl.LOCK_NB, path)
            if clear:
                with contextlib.suppress(OSError):
                    remove_file(path)
        except BlockingIOError:
            yield _read(entry, name)
        finally:
            os.close(entry)


def _names(place: Path) -> list[str]:
    try:
        return sorted(path.name for path in place.iterdir())
    except FileNotFoundError:
        return []


def _write(entry: int, run: MeasuringRun) -> None:
    os.pwrite(entry, json.dumps(asdict(run)).encode().ljust(_LONGEST), 0)


def _read(entry: int, name: str) -> MeasuringRun:
    try:
        return MeasuringRun(**json.loads(os.pread(entry, _LONGEST, 0)))
    except (ValueError, TypeError):
        # Its owner is still writing it.
        return MeasuringRun(name, "somebody", 0, "")


def _user() -> str:
    """Who started the run: all run as root, so this is the name before sudo."""
    return os.environ.get("SUDO_USER") or user_name(os.getuid())
