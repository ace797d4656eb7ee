"""A guest's shell through its resident helper, and how the helper comes into a guest."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from vmlab.guests.agent import LOGIN_ENVIRONMENT, AgentCall
from vmlab.guests.channel import START_LINE, WRITE_SECONDS, Channel, CommandShell
from vmlab.guests.helper_link import HelperJob, HelperLink
from vmlab.model.concurrency import within
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.model.names import HELPER_CHANNEL, WORKLOADS_FOLDER
from vmlab.workloads.contract import Completed, Shell
from vmlab.workloads.verification import UNREADABLE

_CLOSE_SECONDS = 5.0
_UNIT = "vmlab-helper.service"
_FOLDER = "/run/vmlab/helper"
_PACKAGE = "vmlab/guests/payload"
_PARTS = ("helper.py", "helper_frames.py", "helper_programs.py")
_START = f"import sys; sys.path.insert(0, '{_FOLDER}'); from vmlab.guests.payload.helper import main; main()"


async def start_helper(shell: Shell) -> None:
    """Put the helper into a guest and start it as a service. Raises GuestError and DeadlineExceeded."""
    package = resources.files("vmlab.guests.payload")
    for part in _PARTS:
        await shell.write(f"{_FOLDER}/{_PACKAGE}/{part}", package.joinpath(part).read_bytes())
    folders = (str(PurePosixPath(START_LINE).parent), WORKLOADS_FOLDER)
    environment = [f"--setenv={one}" for one in LOGIN_ENVIRONMENT]
    unit = ("systemd-run", "--quiet", f"--unit={_UNIT}", "--property=WorkingDirectory=/root")
    python = ("/usr/bin/python3", "-I", "-S", "-c", _START)
    await shell.run([*unit, *environment, *python, HELPER_CHANNEL, *dict.fromkeys(folders)])


async def rehearse_helper(shell: HelperShell) -> None:
    """Have the helper do each kind of its work once. Raises GuestError and DeadlineExceeded."""
    probe = f"{PurePosixPath(START_LINE).parent}/probe.py"
    await shell.write(probe, b"print(input())\n")
    for argv in (["/usr/bin/python3", "-I", "-S", probe], ["rm", probe]):
        await shell.run(argv, stdin="ready\n")


class HelperChannel:
    """A launched program's standard input and output as lines; see `channel.Channel`."""

    def __init__(self, job: HelperJob, name: str) -> None:
        self._job = job
        self._name = name

    async def send(self, line: str) -> None:
        """Write one line. Raises GuestError when the guest has gone, DeadlineExceeded when it does not read."""
        await self._job.give(f"{line}\n".encode())

    async def receive(self) -> str:
        """Next line; empty at the end of the stream. Raises GuestError when the guest has gone.

        The caller sets the deadline.
        """
        out = self._job.printed["out"]
        while (end := out.find(b"\n")) < 0:
            if self._job.ended is not None:
                end = len(out)
                break
            await self._job.wait()
        line = out[:end].decode("utf-8", "replace")
        del out[: end + 1]
        return line

    async def close(self) -> None:
        """Close standard input, which ends the program; kill it when it does not. Raises DeadlineExceeded."""
        late = f"{self._name}: a program did not end within {_CLOSE_SECONDS:g} s after its input was closed"
        try:
            if self._job.ended is None and self._job.failure is None:
                async with within(_CLOSE_SECONDS, late):
                    await self._job.ask(eof=True)
                    await self._job.end()
        except DeadlineExceeded:
            self._job.cancel()
            raise
        finally:
            self._job.leave()


class HelperShell(CommandShell):
    """A guest's shell through its helper."""

    def __init__(self, name: str, address: str, link: HelperLink) -> None:
        super().__init__(name, address)
        self._link = link

    @classmethod
    async def connect(cls, name: str, address: str, socket: Path, deadline: float) -> HelperShell | None:
        """The shell; None where no helper answers within `deadline` seconds."""
        link = await HelperLink.open(name, socket, deadline)
        return None if link is None else cls(name, address, link)

    async def completed(self, argv: Sequence[str], given: bytes, deadline: float, what: str) -> Completed:
        """As `CommandShell` has it."""
        return await self._done(given, deadline, what, run=list(argv))

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file without a program; see `workloads.contract.Shell.write`."""
        done = await self._done(content, WRITE_SECONDS, f"writing {path}", write=path, mode=mode)
        self.demand_written(path, done)

    async def _done(self, given: bytes, deadline: float, what: str, **order: object) -> Completed:
        job = self._link.job()
        try:
            async with within(deadline, f"{self.name}: {what} took longer than {deadline:.0f} s"):
                await job.give(given)
                await job.ask(**order)
                ended = await job.end()
        finally:
            job.cancel()
            job.leave()
        texts = {name: data.decode("utf-8", "replace") for name, data in job.printed.items()}
        status = ended["ended"]
        if not isinstance(status, int):
            raise GuestError(f"{self.name}: its helper told a status that is none: {str(status)[:100]}")
        return Completed(status, texts["out"], texts["err"] or str(ended.get("error", "")))

    async def clock(self, deadline: float) -> int:
        """The guest's wall clock in nanoseconds. Raises GuestError, and DeadlineExceeded."""
        job = self._link.job()
        try:
            async with within(deadline, f"{self.name}: its helper did not tell the clock within {deadline:g} s"):
                await job.ask(clock=True)
                return int((await job.end())["clock"])
        except UNREADABLE as error:
            raise GuestError(f"{self.name}: its helper told a clock that is none: {error!r:.100}") from error
        finally:
            job.leave()

    def as_agent(self) -> AgentCall:
        """Takes what `identity.identify` asks of a guest agent: the clock, and programs, awaited at their start."""
        ended: dict[int, Completed] = {}

        async def call(command: str, arguments: Any = None, *, deadline: float) -> Any:
            if command == "guest-get-time":
                return await self.clock(deadline)
            if command == "guest-exec":
                given = base64.b64decode(arguments.get("input-data", "")).decode()
                argv = [arguments["path"], *arguments["arg"]]
                ended[len(ended)] = await self.run(argv, stdin=given, check=False)
                return {"pid": len(ended) - 1}
            completed = ended.pop(arguments["pid"])
            printed = {"out-data": completed.stdout, "err-data": completed.stderr}
            texts = {key: base64.b64encode(text.encode()).decode() for key, text in printed.items()}
            return {"exited": True, "exitcode": completed.status, **texts}

        return call

    async def launch(self, argv: list[str]) -> Channel:
        """Start a program and stay connected with it. Raises GuestError, and DeadlineExceeded."""
        job = self._link.job()
        try:
            await job.ask(launch=argv)
        except BaseException:
            job.leave()
            raise
        return HelperChannel(job, self.name)

    async def close(self) -> None:
        """Drop the connection at once; the guest is about to be destroyed."""
        with contextlib.suppress(OSError):
            self._link.close()
