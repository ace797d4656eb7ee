"""The host as a place for workloads, and guests that run on the host itself: commands run inside the guest image's own
root file system.

The same binaries and libraries on both sides of the comparison, so that only the hypervisor differs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from vmlab.guests.channel import CLOSE_SECONDS, SEND_SECONDS, Channel, CommandShell, payload_file, whole_output
from vmlab.guests.guest_setup import start_services
from vmlab.guests.held_client import install_lab_programs
from vmlab.model.concurrency import run_all, within
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.model.names import HOST_PLACE
from vmlab.model.quantities import format_bytes
from vmlab.system.mounts import joining
from vmlab.workloads.shell import Completed

_PROGRAMS = "/run/vmlab/programs"
"""In front of the image's own, in the place's fresh /run."""
_STAND_INS = ("systemctl", "journalctl")
_FOLDERS = ["systemd-tmpfiles", "--create", "--prefix=/run", "--prefix=/tmp"]
"""What the packages' servers expect below /run, made by the image's own program and lists."""
_ENVIRONMENT = {"LANG": "C.UTF-8", "HOME": "/root"}
_LINE_LIMIT = 2**20
_KILL_SECONDS = 5.0


class HostChannel:
    """A local program's standard input and output as lines; see `channel.Channel`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    async def send(self, line: str) -> None:
        """Write one line. Raises GuestError when the program has ended, DeadlineExceeded when it does not read."""
        try:
            async with within(SEND_SECONDS, f"host: a line was not taken within {SEND_SECONDS:g} s"):
                self._stdin.write(line.encode() + b"\n")
                await self._stdin.drain()
        except OSError as error:
            raise GuestError(f"host: the program has ended: {error}") from error

    async def receive(self) -> str:
        """Next line; empty at the end of the stream."""
        try:
            return (await self._stdout.readline()).decode("utf-8", "replace").rstrip("\n")
        except ValueError as error:
            raise GuestError(f"host: a program printed a line of more than {format_bytes(_LINE_LIMIT)}") from error

    async def close(self) -> None:
        """Close standard input, which ends the program; kill it when it does not. Raises DeadlineExceeded."""
        self._stdin.close()
        try:
            await _ended(self._process, CLOSE_SECONDS)
        except TimeoutError:
            await _kill(self._process)


class HostShell(CommandShell):
    """The host behind ``chroot ROOT``; `root` is the mounted root file system of the guest image.

    Its programs run in the lab's own network, or in that of the open descriptor `network`, and in the cgroups whose
    ``cgroup.procs`` are `groups`.
    """

    search = "/usr/sbin:/usr/bin:/sbin:/bin"
    """Where programs are looked for."""

    def __init__(self, root: Path, address: str, network: int | None = None, groups: Sequence[Path] = ()) -> None:
        super().__init__(HOST_PLACE, address)
        self.root = root
        self._groups = tuple(groups)
        # The program that enters the namespace opens it by this path, so that no workload inherits the descriptor.
        self._enter = () if network is None else ("/usr/bin/nsenter", f"--net=/proc/{os.getpid()}/fd/{network}", "--")

    def beyond(self, network: int, address: str) -> HostShell:
        """The same shell in the network namespace of the open descriptor `network`."""
        return HostShell(self.root, address, network, self._groups)

    def within(self, root: Path) -> HostShell:
        """The same shell in the root file system mounted at `root`."""
        return HostShell(root, self.address, groups=self._groups)

    def _inside(self, argv: Sequence[str]) -> list[str]:
        return [*joining(self._groups), *self._placed(argv)]

    def _placed(self, argv: Sequence[str]) -> list[str]:
        return [*self._enter, "/usr/sbin/chroot", str(self.root), *argv]

    async def _started(self, argv: Sequence[str], errors: int) -> asyncio.subprocess.Process:
        """The program, whose standard error goes to `errors`."""
        return await asyncio.create_subprocess_exec(
            *self._inside(argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={**_ENVIRONMENT, "PATH": self.search},
            limit=_LINE_LIMIT,
        )

    async def completed(self, argv: Sequence[str], given: bytes, deadline: float, what: str) -> Completed:
        """As `CommandShell` has it."""
        process = await self._started(argv, asyncio.subprocess.PIPE)
        try:
            async with within(deadline, f"host: {what} took longer than {deadline:.0f} s"):
                out, err = await _communicated(process, given, what)
        finally:
            if process.returncode is None:
                await _kill(process)
        return Completed(process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file below the root; only its temporary folders and /data are writable."""
        self.put(path, content, mode=mode)

    def put(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """As `write`, without an event loop."""
        target = self.root / path.lstrip("/")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(mode)
        except OSError as error:
            raise GuestError(f"host: cannot write {path}: {error.strerror}") from error

    async def launch(self, argv: list[str]) -> Channel:
        """Start a program and stay connected with it."""
        return HostChannel(await self._started(argv, asyncio.subprocess.DEVNULL))


class BareShell(HostShell):
    """The place whose first process is `pid`, in this process's PID namespace; it has the IPv4 `address`."""

    search = f"{_PROGRAMS}:{HostShell.search}"

    def __init__(self, pid: int, address: str, groups: Sequence[Path] = ()) -> None:
        super().__init__(Path("/"), address, groups=groups)
        self._pid = pid

    def _placed(self, argv: Sequence[str]) -> list[str]:
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd=/")
        # What is killed here is the program that entered; the one that it started dies with it.
        return ["/usr/bin/nsenter", f"--target={self._pid}", *spaces, "setpriv", "--pdeathsig=KILL", "--", *argv]

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file by a program inside, so that no link in the place can lead out of it."""
        await CommandShell.write(self, path, content, mode=mode)

    async def prepare(self, roles: Iterable[str], deadline: float) -> None:
        """Put the start line and what stands in for systemd into the place, and start the servers of `roles`.

        Raises GuestError naming each unit that is not active, and DeadlineExceeded.
        """
        program = payload_file("systemctl.py")
        for name in _STAND_INS:
            await self.write(f"{_PROGRAMS}/{name}", program, mode=0o755)
        await install_lab_programs(self)
        await self.run(_FOLDERS, check=False)
        await start_services(self, roles, deadline)


async def _communicated(process: asyncio.subprocess.Process, stdin: bytes, name: str) -> tuple[bytes, bytes]:
    """As `Process.communicate`. Raises GuestError for more output than `MOST_PRINTED`."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None

    async def give(to: asyncio.StreamWriter) -> bytes:
        with contextlib.suppress(ConnectionError):
            to.write(stdin)
            await to.drain()
        to.close()
        return b""

    outputs = [whole_output(stream.read, "host", name) for stream in (process.stdout, process.stderr)]
    _, out, err = await run_all([give(process.stdin), *outputs])
    await process.wait()
    return out, err


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Does not wait for it: a process that waits for a hanging disk does not end even after SIGKILL."""
    process.kill()
    try:
        await _ended(process, _KILL_SECONDS)
    except TimeoutError as error:
        raise DeadlineExceeded(f"host: process {process.pid} outlived SIGKILL by {_KILL_SECONDS:g} s") from error


async def _ended(process: asyncio.subprocess.Process, within: float) -> None:
    """Discards its output, since asyncio sees the end only after that of the output. Raises TimeoutError."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    discarding = [asyncio.ensure_future(_discard(stream)) for stream in streams]
    try:
        async with asyncio.timeout(within):
            await process.wait()
    finally:
        for task in discarding:
            task.cancel()


async def _discard(stream: asyncio.StreamReader) -> None:
    # Whoever still waits for a line takes it instead.
    with contextlib.suppress(RuntimeError):
        while await stream.read(_LINE_LIMIT):
            pass
