"""One tree of errors; every leaf knows the exit code that it means.

::

    VmlabError                        1
    ├── UsageError                    2   wrong usage of a command
    │   └── ScenarioError             2   a scenario that cannot be run, with its position
    ├── RefusedError                  3   not started; says what would mend it
    │   ├── ImageError                3   the image could not be built or is damaged
    │   └── HypervisorUnavailable     3   libvirt, QEMU or a privilege is missing
    ├── HypervisorError               1   a libvirt or QEMU call failed
    │   └── SnapshotError             1   a saved guest does not load
    ├── GuestError                    1   a guest did not do what it was asked
    ├── WorkloadError                 1   a workload failed or did not verify
    ├── DeadlineExceeded              1   something took longer than it may
    ├── StoreError                    1   a run's store could not be written, or is damaged
    ├── InvalidMeasurement            4   measured, but not to be believed
    ├── CleanupIncomplete             5   something of the lab was left behind
    └── RunInterrupted                130 / 143
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """What the process tells its caller; a promise of the command line."""

    PASSED = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    INVALID = 4
    CLEANUP_INCOMPLETE = 5
    INTERRUPTED = 130
    TERMINATED = 143


class VmlabError(Exception):
    """Base of all errors that a user is meant to read; `str()` is one clear line."""

    exit_code: ExitCode = ExitCode.FAILED


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
    """A saved guest that does not load: damaged, or saved from another machine. Making it anew mends it."""


class GuestError(VmlabError):
    """A guest did not boot, answer or obey."""


class WorkloadError(VmlabError):
    """A workload failed, or its own verification did not hold."""


class DeadlineExceeded(VmlabError):
    """Something took longer than it may; the message names it and its deadline in seconds."""


class StoreError(VmlabError):
    """A run's store could not be written, as on a full disk, or what it holds is damaged."""


class InvalidMeasurement(VmlabError):
    """A figure exists but broke a validity rule; the message is the reason."""

    exit_code = ExitCode.INVALID


class CleanupIncomplete(VmlabError):
    """Something of the lab was left behind; `vmlab clean` finishes the job."""

    exit_code = ExitCode.CLEANUP_INCOMPLETE


class RunInterrupted(VmlabError):
    """The run was stopped by a person or a signal; what was measured is kept."""

    exit_code = ExitCode.INTERRUPTED
