"""A guest's RAM and devices, out to a file and in again: QEMU's migration with a file in the place of a peer.

QEMU is handed the open file itself, so that no byte goes through this process. Its sandbox allows that, while it kills
QEMU for starting a program to pipe through. Pages of zeros take nine bytes in the file.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from vmlab.hypervisor.calls import call
from vmlab.hypervisor.qmp import qmp
from vmlab.model.errors import DeadlineExceeded, HypervisorError

_ASK = 20.0
_FIRST_POLL = 0.01
_POLL = 0.03
_FILE = "vmlab-state"
_NO_LIMIT = 0


async def write_state(domain: Any, name: str, file: Path, deadline: float) -> None:
    """Write the state of a guest whose vCPUs stand to a new `file`, within `deadline` seconds.

    Raises HypervisorError or DeadlineExceeded. The guest cannot go on afterwards: its disk is given up.
    """
    await call(f"{name}: saving", _ASK, _begin_writing, domain, file)
    await _finished(domain, name, "saving", deadline)


def _begin_writing(domain: Any, file: Path) -> None:
    qmp(domain, "migrate-set-parameters", {"max-bandwidth": _NO_LIMIT})
    _with_file(domain, file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "migrate")


async def read_state(domain: Any, name: str, file: Path, deadline: float) -> None:
    """Load the state in `file` into a QEMU that was started with ``-incoming defer``; it stays paused.

    Raises HypervisorError when QEMU does not take it, which ends QEMU, and DeadlineExceeded.
    """
    await call(f"{name}: loading", _ASK, _with_file, domain, file, os.O_RDONLY, "migrate-incoming")
    await _finished(domain, name, "loading", deadline)


def _with_file(domain: Any, file: Path, flags: int, command: str) -> None:
    descriptor = os.open(file, flags | os.O_CLOEXEC, 0o600)
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
