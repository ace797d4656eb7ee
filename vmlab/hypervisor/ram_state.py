"""Saves a guest's RAM and devices to a file and loads them: QEMU's migration, with a file in place of the other QEMU.

QEMU gets the open file, so that no byte goes through this process. Its sandbox allows that; it would kill QEMU for
starting a program as a pipe. Pages of zeros take nine bytes in the file. What is loaded is compared with its digests
beside QEMU, see `ram_check`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vmlab.hypervisor.calls import call
from vmlab.hypervisor.qmp import qmp
from vmlab.hypervisor.ram_check import HeldState
from vmlab.integrity import FileDigests
from vmlab.model.concurrency import shielded
from vmlab.model.errors import DeadlineExceeded, HypervisorError

_ASK = 20.0
_FIRST_POLL = 0.01
_POLL = 0.03
_FILE = "vmlab-state"
_NO_LIMIT = 0


async def write_state(domain: Any, name: str, file: Path, deadline: float) -> None:
    """Write the state of a guest whose vCPUs are stopped to a new `file`, within `deadline` seconds.

    Raises HypervisorError or DeadlineExceeded. The guest cannot continue afterwards: QEMU has released its disk.
    """
    await call(f"{name}: saving", _ASK, _begin_writing, domain, file)
    await _finished(domain, name, "saving", deadline)


def _begin_writing(domain: Any, file: Path) -> None:
    qmp(domain, "migrate-set-parameters", {"max-bandwidth": _NO_LIMIT})
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    _hand_over(domain, descriptor, "migrate")


async def read_state(
    domain: Any,
    name: str,
    file: Path,
    expected: FileDigests,
    deadline: float,
    make_room: Callable[[int], None] = lambda _size: None,
) -> None:
    """Load the state in `file` into a QEMU that was started with ``-incoming defer``; it stays paused.

    `make_room` is called with the file's size right before QEMU begins.

    Raises SnapshotError when the file is not what was saved, even if QEMU loads it, RefusedError without the memory to
    hold it, HypervisorError when QEMU refuses it, which ends QEMU, and DeadlineExceeded.
    """
    held = HeldState(file, expected)
    try:
        # Neither this nor the release may be cancelled: memory would stay locked.
        await shielded(call(f"{name}: reading its RAM", deadline, held.hold))
        comparing = asyncio.ensure_future(call(f"{name}: comparing its RAM", deadline, held.compare))
        try:
            make_room(expected.size)
            await call(f"{name}: loading", _ASK, _hand_over, domain, os.dup(held.descriptor), "migrate-incoming")
            await _finished(domain, name, "loading", deadline)
        finally:
            await comparing
    finally:
        await shielded(call(f"{name}: releasing its RAM", _ASK, held.release))


def _hand_over(domain: Any, descriptor: int, command: str) -> None:
    """Give QEMU an open file to stream to or from; this process keeps it open no longer."""
    try:
        qmp(domain, "getfd", {"fdname": _FILE}, file=descriptor)
    finally:
        os.close(descriptor)
    qmp(domain, command, {"uri": f"fd:{_FILE}"})


async def _finished(domain: Any, name: str, what: str, deadline: float) -> None:
    wait = _FIRST_POLL
    try:
        async with asyncio.timeout(deadline):
            while True:
                found = await call(f"{name}: {what}", _ASK, qmp, domain, "query-migrate")
                if found.get("status") == "completed":
                    return
                if found.get("status") in ("failed", "cancelled"):
                    raise HypervisorError(f"{name}: {what}: {found.get('error-desc', found['status'])}")
                await asyncio.sleep(wait)
                wait = _POLL
    except TimeoutError as error:
        raise DeadlineExceeded(f"{name}: {what} took longer than {deadline:g} s") from error
