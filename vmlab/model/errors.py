"""One tree of errors; every leaf knows the exit code that it means.

::

    VmlabError                        1
    ├── CommandFailed                 1   a run could not do what it was asked meanwhile
    ├── UsageError                    2   wrong usage of a command
    │   └── ScenarioError             2   a scenario that cannot be run, with its position
    ├── RefusedError                  3   not started; says what the user can do about it
    │   ├── ImageError                3   the image could not be built or is damaged
    │   └── HypervisorUnavailable     3   libvirt, QEMU or a privilege is missing
    ├── HypervisorError               1   a libvirt or QEMU call failed
    │   └── SnapshotError             1   a saved guest is damaged or does not load
    ├── GuestError                    1   a guest did not do what it was asked
    │   └── GuestLost                 1   a guest died while it was needed, or was stopped by QEMU
    ├── WorkloadError                 1   a workload failed or did not verify
    ├── DeadlineExceeded              1   something took longer than it may
    ├── StoreError                    1   a run's store or journal could not be written, or is damaged
    ├── CleanupIncomplete             5   something of the lab was left behind
    └── RunInterrupted                129 / 130 / 143
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType

from vmlab.model.visible import cut


class ExitCode(IntEnum):
    """The exit code of the process; part of the command line's interface.

    READER_GONE means that nobody reads standard output any more: 128 + SIGPIPE, as a shell reports it. TERMINAL_CLOSED
    (SIGHUP) is that of a command whose terminal was closed, QUIT (SIGQUIT) of what draws on one; a run has neither.
    """

    PASSED = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    INVALID = 4
    CLEANUP_INCOMPLETE = 5
    TERMINAL_CLOSED = 129
    INTERRUPTED = 130
    QUIT = 131
    READER_GONE = 141
    TERMINATED = 143

    @classmethod
    def of_signal(cls, number: int) -> ExitCode:
        """The exit code of a program that was stopped by a signal, as a shell reports it: 128 and its number."""
        codes = {int(signal.SIGINT): cls.INTERRUPTED, int(signal.SIGHUP): cls.TERMINAL_CLOSED}
        return codes.get(number, cls.TERMINATED)


OF_THIS_PROCESS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM})
"""Errors of the system that say something of the process that reads a file, and nothing of the file's content."""


MOST_LETTERS = 4096
"""Of an error; a guest may have said much more."""


class VmlabError(Exception):
    """Base of all errors that a user is meant to read; `str()` is one clear line, of `MOST_LETTERS` at most."""

    exit_code: ExitCode = ExitCode.FAILED

    def __str__(self) -> str:
        return cut(super().__str__(), MOST_LETTERS)

    def lines(self) -> tuple[str, ...]:
        """The lines of the message: one, unless several things are wrong."""
        return (str(self),)


def in_one_line(error: Exception) -> str:
    """An error as one line for the user; errors of the system begin with the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


_OF_THE_PLACE = frozenset(
    {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP}
    | {errno.EIO, errno.EFBIG}
)
"""Errors that another folder would not have."""


def unusable(error: OSError, doing: str = "use") -> RefusedError:
    """An error of the system, for a file or folder that cannot be used, as one of this tree: it names the file, and
    what moves it where that is the lab's own.
    """
    words = in_one_line(error)
    if not isinstance(error.filename, str | Path):
        return RefusedError(words)
    # Imported late: it loads platformdirs, and only an error needs it.
    from vmlab.model.places import remedy_for

    remedy = remedy_for(error.filename) if error.errno in _OF_THE_PLACE else None
    return RefusedError(f"cannot {doing} {words}", remedy=remedy)


class CommandFailed(VmlabError):
    """A run could not do what it was asked to do while it went on."""


class UsageError(VmlabError):
    """A command was called in a way that makes no sense."""

    exit_code = ExitCode.USAGE


class ScenarioError(UsageError):
    """A scenario file that cannot be run; renders as ``file:line:column: what would be right``.

    Lines and columns count from 1. Without a position only the file is named.
    """

    def __init__(
        self, message: str, *, file: Path | str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        where = "" if file is None else f"{file}:"
        if line is not None:
            where += f"{line}:{column or 1}:"
        super().__init__(f"{where} {message}".strip())
        self.message = message
        self.file = None if file is None else str(file)
        self.line = line
        self.column = column


class RefusedError(VmlabError):
    """Nothing was started; `remedy` is what the user can do about it, a command where there is one."""

    exit_code = ExitCode.REFUSED

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message if remedy is None else f"{message} ({remedy})")
        self.remedy = remedy


class ImageError(RefusedError):
    """An image that could not be built, or that does not match its manifest."""


class HypervisorUnavailable(RefusedError):
    """The hypervisor cannot be used here at all."""


class HypervisorError(VmlabError):
    """A call to libvirt or QEMU failed."""


class SnapshotError(HypervisorError):
    """A saved guest that does not load: damaged, or saved on another machine. Making a new one solves it.

    `snapshot` is its id, where it is known which one of several it is.
    """

    def __init__(self, message: str, *, snapshot: str | None = None) -> None:
        super().__init__(message)
        self.snapshot = snapshot


class GuestError(VmlabError):
    """A guest did not boot, did not answer, or failed to do what it was asked."""


class GuestLost(GuestError):
    """Guest `guest` died while it was needed, or its disk made QEMU stop it; `cause` is one line.

    `crashed` tells that its QEMU died of a fault of its own, such as a segmentation fault.
    """

    def __init__(self, guest: str, cause: str, *, crashed: bool = False) -> None:
        super().__init__(f"{guest}: {cause}")
        self.guest = guest
        self.cause = cause
        self.crashed = crashed


class WorkloadError(VmlabError):
    """A workload failed, or its own verification did not hold; `texts` are those that it did not hold for, by name."""

    texts: Mapping[str, str] = MappingProxyType({})


class DeadlineExceeded(VmlabError):
    """Something took longer than it may; the message names it and its deadline in seconds."""


class StoreError(VmlabError):
    """A run's store or journal could not be written, for example on a full disk, or its content is damaged."""


class CleanupIncomplete(VmlabError):
    """Something of the lab was left behind; `vmlab clean` removes it."""

    exit_code = ExitCode.CLEANUP_INCOMPLETE


class RunInterrupted(VmlabError):
    """The run was stopped by a person or a signal; what was measured is kept."""

    exit_code = ExitCode.INTERRUPTED
