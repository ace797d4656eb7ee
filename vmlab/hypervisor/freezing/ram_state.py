"""Saves a guest's RAM and devices to a file and loads them: QEMU's migration, with a file in place of the other QEMU.

QEMU gets the open file, so that no byte goes through this process. Its sandbox allows that; it would kill QEMU for
starting a program as a pipe. Pages of zeros take nine bytes in the file. What is loaded is compared with its digests
beside QEMU, see `ram_check`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vmlab.hypervisor.freezing.ram_check import HeldState
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.libvirt.qmp import qmp
from vmlab.integrity import FileDigests
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


class SharedState:
    """A saved state in `file`, for all QEMUs that load it at the same time: read in once, and compared once.

    It is held in memory from the first `hold` to `release`, which must be called in the end.
    """

    def __init__(self, file: Path, expected: FileDigests, deadline: float) -> None:
        self.size = expected.size
        self._name = f"{file.parent.name}/{file.name}"
        self._held = HeldState(file, expected)
        self._deadline = deadline
        self._steps: dict[str, asyncio.Task[None]] = {}

    async def hold(self) -> None:
        """Have it in memory. Raises what `HeldState.hold` raises, and DeadlineExceeded."""
        await self._once("reading", self._held.hold)

    async def compare(self) -> None:
        """Have all of it compared. Raises SnapshotError, and DeadlineExceeded."""
        await self._once("comparing", self._held.compare)

    async def _once(self, what: str, step: Callable[[], None]) -> None:
        task = self._steps.get(what)
        if task is None:
            task = self._steps[what] = asyncio.ensure_future(call(f"{what} {self._name}", self._deadline, step))
        # A guest that is given up must not end what others wait for.
        await asyncio.shield(task)

    def opened(self) -> int:
        """A new descriptor of the very file that is held, with a position of its own."""
        return os.open(f"/proc/self/fd/{self._held.descriptor}", os.O_RDONLY | os.O_CLOEXEC)

    async def release(self) -> None:
        """Release the memory when nothing is under way any more. Not to be cancelled: memory would stay locked."""
        await asyncio.gather(*self._steps.values(), return_exceptions=True)
        await call(f"releasing {self._name}", _ASK, self._held.release)


async def released(states: Iterable[SharedState]) -> None:
    """Release all of them, also where one of them cannot be."""
    results = await asyncio.gather(*(state.release() for state in states), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def read_state(
    domain: Any, name: str, state: SharedState, deadline: float, make_room: Callable[[int], None] = lambda _size: None
) -> None:
    """Load `state` into a QEMU that was started with ``-incoming defer``; it stays paused.

    `make_room` is called with the state's size right before QEMU begins.

    Raises SnapshotError when the file is not what was saved, even if QEMU loads it, RefusedError without the memory to
    hold it, HypervisorError when QEMU refuses it, which ends QEMU, and DeadlineExceeded.
    """
    await state.hold()
    comparing = asyncio.ensure_future(state.compare())
    try:
        make_room(state.size)
        await call(f"{name}: loading", _ASK, _hand_over, domain, state.opened(), "migrate-incoming")
        await _finished(domain, name, "loading", deadline)
    finally:
        await comparing


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
