"""A guest's shell through its resident helper, and how the helper comes into a guest.

The host's end of the channel to the helper is here, too; the protocol is in ``payload/helper.py``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from vmlab.guests.agent import LOGIN_ENVIRONMENT, AgentCall
from vmlab.guests.channel import (
    CLOSE_SECONDS,
    SEND_SECONDS,
    START_LINE,
    WRITE_SECONDS,
    Channel,
    CommandShell,
    payload_file,
)
from vmlab.guests.payload.helper_frames import PIECE, decoded, encoded, packed, take
from vmlab.model.concurrency import within
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.model.names import HELPER_CHANNEL, WORKLOADS_FOLDER
from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED
from vmlab.workloads.shell import Completed, Shell
from vmlab.workloads.verification import UNREADABLE

_UNIT = "vmlab-helper.service"
_FOLDER = "/run/vmlab/helper"
_PACKAGE = "vmlab/guests/payload"
_PARTS = ("helper.py", "helper_frames.py", "helper_programs.py")
_START = f"import sys; sys.path.insert(0, '{_FOLDER}'); from vmlab.guests.payload.helper import main; main()"


async def start_helper(shell: Shell) -> None:
    """Put the helper into a guest and start it as a service. Raises GuestError and DeadlineExceeded."""
    for part in _PARTS:
        await shell.write(f"{_FOLDER}/{_PACKAGE}/{part}", payload_file(part))
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
        late = f"{self._name}: a program did not end within {CLOSE_SECONDS:g} s after its input was closed"
        try:
            if self._job.ended is None and self._job.failure is None:
                async with within(CLOSE_SECONDS, late):
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
        """Write a file without a program; see `workloads.shell.Shell.write`."""
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


_HELLO_AGAIN = 1.0
QUIET_SECONDS = 20.0
"""While programs run and a helper says nothing for so long, it is asked whether it is there."""
SILENT_SECONDS = 60.0
"""After that time without an answer it is not: a guest keeps its end of the channel when its helper is killed."""


class HelperJob:
    """One program, or one file that is written: what it printed so far, and how it ended.

    `ended` is None until then; the empty message in `news` wakes who waits for more.
    """

    def __init__(self, link: HelperLink, number: int) -> None:
        self._link = link
        self.number = number
        self.printed = {"out": bytearray(), "err": bytearray()}
        self.ended: dict[str, Any] | None = None
        self.failure: GuestError | None = None
        self.news = asyncio.Event()

    def take(self, body: dict[str, Any]) -> None:
        """What the helper said of it."""
        for name, held in self.printed.items():
            if name in body:
                held += decoded(body[name])
                if len(held) > MOST_PRINTED:
                    text = f"{self._link.guest}: a program printed more than {format_bytes(MOST_PRINTED)}"
                    self.failure = GuestError(text)
        if "ended" in body:
            self.ended = body
        self.news.set()

    def fail(self, error: GuestError) -> None:
        """Nothing more will be heard of it."""
        self.failure = self.failure or error
        self.news.set()

    async def wait(self) -> None:
        """Return when there is news. Raises GuestError where there will be none."""
        await self.news.wait()
        self.news.clear()
        if self.failure is not None and self.ended is None:
            raise self.failure

    async def end(self) -> dict[str, Any]:
        """How it ended. The caller sets the deadline."""
        while self.ended is None:
            await self.wait()
        return self.ended

    async def give(self, data: bytes) -> None:
        """Bytes for its input, or for the file."""
        for at in range(0, len(data), PIECE):
            await self._link.send({"id": self.number, "in": encoded(data[at : at + PIECE])})

    async def ask(self, **body: Any) -> None:
        """What is to be done."""
        await self._link.send({"id": self.number, **body})

    def cancel(self) -> None:
        """Have the program killed, without waiting for it."""
        if self.ended is None:
            self._link.post({"id": self.number, "kill": True})

    def leave(self) -> None:
        """Nobody listens to it any more."""
        self._link.forget(self.number)


class HelperLink:
    """A connection to one helper, with a session of its own."""

    def __init__(self, guest: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.guest = guest
        self._reader = reader
        self._writer = writer
        self._session = secrets.token_hex(8)
        self._jobs: dict[int, HelperJob] = {}
        self._count = 0
        self._greeted = asyncio.Event()
        self._lost: GuestError | None = None
        self._heard = time.monotonic()
        self._listening = asyncio.ensure_future(self._listen())
        self._watching = asyncio.ensure_future(self._watch())

    @classmethod
    async def open(cls, guest: str, socket: Path, deadline: float) -> HelperLink | None:
        """The connection; None where no helper answers within `deadline` seconds."""
        try:
            async with asyncio.timeout(deadline):
                reader, writer = await asyncio.open_unix_connection(socket)
        except (OSError, TimeoutError):
            return None
        link = cls(guest, reader, writer)
        try:
            async with asyncio.timeout(deadline):
                while not link._greeted.is_set():
                    link.post({"hello": True})
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_HELLO_AGAIN):
                            await link._greeted.wait()
        except TimeoutError:
            link.close()
            return None
        except BaseException:
            link.close()
            raise
        if link._lost is not None:
            link.close()
            return None
        return link

    def job(self) -> HelperJob:
        """A new program; call its `leave` in the end."""
        self._count += 1
        job = self._jobs[self._count] = HelperJob(self, self._count)
        if self._lost is not None:
            job.fail(self._lost)
        return job

    def forget(self, number: int) -> None:
        """Pass over what is still said of a program."""
        self._jobs.pop(number, None)

    def post(self, body: dict[str, Any]) -> None:
        """Send without waiting until it is taken."""
        if self._lost is None:
            self._writer.write(packed({"s": self._session, **body}))

    async def send(self, body: dict[str, Any]) -> None:
        """Send a frame. Raises GuestError when the guest has gone, DeadlineExceeded when it does not read."""
        if self._lost is not None:
            raise self._lost
        try:
            async with within(SEND_SECONDS, f"{self.guest}: its helper has taken nothing for {SEND_SECONDS:g} s"):
                self.post(body)
                await self._writer.drain()
        except OSError as error:
            raise GuestError(f"{self.guest}: the connection to its helper was lost: {error}") from error

    async def _listen(self) -> None:
        buffer, why = bytearray(), "it was closed"
        try:
            while piece := await self._reader.read(2 * PIECE):
                self._heard = time.monotonic()
                buffer += piece
                for body in take(buffer):
                    self._hear(body)
        except OSError as error:
            why = str(error)
        except RecursionError:
            why = "it said what is nested too deep"
        finally:
            self._lose(why)

    async def _watch(self) -> None:
        """Give up a helper that has died in a guest that lives."""
        asked: float | None = None
        while self._lost is None:
            await asyncio.sleep(QUIET_SECONDS / 4)
            now = time.monotonic()
            if not self._jobs or now - self._heard < QUIET_SECONDS:
                asked = None
            elif asked is None:
                asked = now
                self.post({"hello": True})
            elif now - asked >= SILENT_SECONDS:
                self._lose(f"it has not answered for {SILENT_SECONDS:g} s")

    def _hear(self, body: dict[str, Any]) -> None:
        if body.get("s") != self._session:
            return
        if "hello" in body:
            self._greeted.set()
        elif (job := self._jobs.get(body.get("id", 0))) is not None:
            try:
                job.take(body)
            except UNREADABLE as error:
                job.fail(GuestError(f"{self.guest}: its helper said what cannot be read: {error}"))

    def _lose(self, why: str) -> None:
        self._lost = GuestError(f"{self.guest}: the connection to its helper was lost: {why}")
        self._greeted.set()
        for job in self._jobs.values():
            job.fail(self._lost)

    def close(self) -> None:
        """Close at once: whoever waits for an answer gets an error."""
        self._listening.cancel()
        self._watching.cancel()
        self._lose("it was closed")
        self._writer.transport.abort()
