"""A guest on the host: its files, its network, its cgroups and its first process, from their making to their end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vmlab.hypervisor.bare_init import COPIED, BareOrder, make_files
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.lab_network import bridged_network
from vmlab.model.errors import HypervisorError
from vmlab.system import kernel
from vmlab.system.descriptors import closed_after
from vmlab.system.mounts import joining
from vmlab.system.removal import remove_empty_folder

INIT = "vmlab.hypervisor.bare_init"
_START_SECONDS = 60.0
_END_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BarePlace:
    """A place that is there: its PID 1 as this process sees it, and its cgroups' ``cgroup.procs``."""

    pid: int
    groups: tuple[Path, ...]


async def copy_image(image: Path, folder: Path) -> None:
    """Copy the servers' data from the mounted `image` into the empty `folder`, with owners and modes.

    Raises HypervisorError and OSError.
    """
    plain = await asyncio.to_thread(make_files, folder)
    # Python's own copies lose owners.
    argv = ("cp", "--archive", "--parents", "--", *COPIED, str(plain))
    process = await asyncio.create_subprocess_exec(*argv, cwd=image, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    if process.returncode:
        words = said.decode("utf-8", "replace").strip().splitlines()
        raise HypervisorError(f"cannot copy {image} for a guest on the host: {words[-1] if words else 'cp failed'}")
    await asyncio.to_thread(_settle, folder)


def _settle(folder: Path) -> None:
    # Thousands of small files: written at once here, not one by one when their pages are dropped.
    with closed_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as descriptor:
        kernel.sync_file_system(descriptor)


@contextlib.asynccontextmanager
async def bare_place(
    order: BareOrder, cable: tuple[str, str], address: str, groups: Sequence[Path]
) -> AsyncIterator[BarePlace]:
    """The place while the block runs; nothing that was started in it outlives the block.

    Its network is one end of `cable`, with the IPv4 `address`; all of it is in the cgroups whose ``cgroup.procs`` are
    `groups`. Raises HypervisorError, and HypervisorUnavailable without namespaces or a bridge.
    """
    require_isolation()
    root = Path(order.root)
    await asyncio.to_thread(root.mkdir, parents=True)
    try:
        with bridged_network(cable, address) as network:
            process = await _started(order, network, groups)
            try:
                yield BarePlace(await _first(process), tuple(groups))
            finally:
                await _end(process)
    finally:
        remove_empty_folder(root)


async def _started(order: BareOrder, network: int, groups: Sequence[Path]) -> asyncio.subprocess.Process:
    """By the event loop's own thread, as the place ends with the thread that has started it."""
    enter = ("nsenter", f"--net=/proc/{os.getpid()}/fd/{network}", "--")
    return await asyncio.create_subprocess_exec(
        *(*joining(groups), *enter, sys.executable, "-m", INIT, order.to_json()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _first(process: asyncio.subprocess.Process) -> int:
    """The number of PID 1, once it is below its root. Raises HypervisorError."""
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(_START_SECONDS):
            said = {(await process.stdout.readline()).decode().strip() for _ in range(2)}
            if "ready" in said and len(said) == 2:
                return int((said - {"ready"}).pop())
            words = (await process.stderr.read()).decode("utf-8", "replace").strip().splitlines()
    except TimeoutError as error:
        raise HypervisorError(f"a guest on the host was not there within {_START_SECONDS:g} s") from error
    raise HypervisorError(f"no guest on the host: {words[-1] if words else 'its first process ended'}")


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError as error:
        process.kill()
        raise HypervisorError(f"what ran in a guest on the host did not end within {_END_SECONDS:g} s") from error
