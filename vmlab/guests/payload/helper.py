"""Runs inside a guest: starts programs for the lab, those of its own by a fork of this interpreter.

Only the standard library of Python 3.11, started with ``-I -S``. Arguments: the name of a virtio-serial port, or
``fd:N`` for an open descriptor, and folders whose programs are compiled beforehand.

Both directions carry the frames of ``helper_frames``. Every body has the session ``s`` that the host chose in its
hello; frames of another session are passed over. ``data`` is base64. From the host::

    {"s": S, "hello": true}                          ends all programs of the session before
    {"s": S, "id": N, "in": data}                    kept for what follows; input of a launched program
    {"s": S, "id": N, "write": PATH, "mode": MODE}   a file of what was kept
    {"s": S, "id": N, "run": ARGV}                   a program with what was kept as its input, which is a file
    {"s": S, "id": N, "launch": ARGV}                a program whose input stays open
    {"s": S, "id": N, "clock": true}                 answered by {…, "ended": 0, "clock": NANOSECONDS}
    {"s": S, "id": N, "eof": true}                   closes that input
    {"s": S, "id": N, "kill": true}                  kills the program and all of its session

and from here::

    {"s": S, "hello": VERSION} · {"s": S, "id": N, "out": data} · {"s": S, "id": N, "err": data}
    {"s": S, "id": N, "ended": STATUS, "error": TEXT}

A status is an exit code, or 128 and the signal. A program of the form ``python3 -I -S FILE ARGUMENT …`` is forked from
this interpreter. While nothing is asked and no program prints, this one sleeps without a wake-up: the port is watched
for changes alone (EPOLLET), because a port without a host is always ready.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time

from vmlab.guests.payload.helper_frames import PIECE, decoded, encoded, packed, take
from vmlab.guests.payload.helper_programs import Codes, spawned

# Loaded for the programs that are forked.
import hashlib  # noqa: F401  # isort: skip
import itertools  # noqa: F401  # isort: skip
import random  # noqa: F401  # isort: skip
import re  # noqa: F401  # isort: skip
import socket  # noqa: F401  # isort: skip
import struct  # noqa: F401  # isort: skip
import subprocess  # noqa: F401  # isort: skip

# Type checkers take this name for true. Importing typing would cost a guest a tenth of a second under emulation.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmlab.guests.payload.helper_frames import Body

VERSION = 1
PENDING = 2**20
NOT_FOUND = 127


def port_of(name: str) -> int:
    """Opens the port; udev, which would name it, need not run."""
    if name.startswith("fd:"):
        os.set_blocking(int(name[3:]), False)
        return int(name[3:])
    for port in os.listdir("/sys/class/virtio-ports"):
        with open(f"/sys/class/virtio-ports/{port}/name") as file:
            if file.read().strip() == name:
                return os.open(f"/dev/{port}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    sys.exit(f"no port is called {name}")


class Job:
    """One program. `streams` are the ends of its pipes that are still open, by descriptor."""

    def __init__(self, number: int, held: bool) -> None:
        self.number, self.held, self.wanted = number, held, True
        self.pid = self.pidfd = self.stdin = -1
        self.status: int | None = None
        self.streams: dict[int, str] = {}
        self.printed = {"out": b"", "err": b""}

    def kill(self) -> None:
        if self.status is not None:
            return
        for end in (os.killpg, os.kill):
            try:
                end(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            return


class Helper:
    def __init__(self, port: int, codes: Codes) -> None:
        self.port, self.codes = port, codes
        self.session: str | None = None
        self.jobs: dict[int, Job] = {}
        self.kept: dict[int, bytearray] = {}
        self.watched: dict[int, Job] = {}
        self.received, self.outgoing = bytearray(), bytearray()
        self.paused = False
        self.epoll = select.epoll()
        self.epoll.register(port, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)

    def serve(self) -> None:
        while True:
            for ready, _ in self.epoll.poll():
                if ready == self.port:
                    self.read_port()
                elif ready in self.watched:
                    self.hear(self.watched[ready], ready)
            self.flush()

    def read_port(self) -> None:
        while True:
            try:
                piece = os.read(self.port, PIECE)
            except BlockingIOError:
                break
            if not piece:
                # No host is connected.
                self.forget()
                self.session = None
                break
            self.received += piece
            for body in take(self.received):
                self.obey(body)

    def forget(self) -> None:
        """Ends all that the session before has begun."""
        for job in self.jobs.values():
            job.kill()
            job.wanted = False
            for descriptor in list(job.streams):
                self.let_go(job, descriptor)
            if job.status is not None:
                self.finish(job)
        self.jobs.clear()
        self.kept.clear()
        self.outgoing.clear()

    def say(self, **body: object) -> None:
        self.outgoing += packed({"s": self.session, **body})

    def flush(self) -> None:
        while self.outgoing:
            try:
                sent = os.write(self.port, self.outgoing[:PIECE])
            except OSError:
                break
            del self.outgoing[:sent]
        if self.paused != (len(self.outgoing) > PENDING):
            # A host that does not read must not fill the memory of its guest.
            self.paused = not self.paused
            for descriptor in self.watched:
                self.epoll.modify(descriptor, 0 if self.paused else select.EPOLLIN)

    def obey(self, body: Body) -> None:
        if body.get("hello"):
            if body["s"] != self.session:
                self.forget()
                self.session = body["s"]
            self.say(hello=VERSION)
        elif body.get("s") == self.session and isinstance(body.get("id"), int):
            number = body["id"]
            try:
                self.act(number, self.jobs.get(number), body)
            except (OSError, ValueError, KeyError, TypeError, SyntaxError) as error:
                missing = isinstance(error, FileNotFoundError) and not ("write" in body or "in" in body)
                self.say(id=number, ended=NOT_FOUND if missing else 1, error=str(error))

    def act(self, number: int, job: Job | None, body: Body) -> None:
        if "in" in body:
            data = decoded(body["in"])
            if job is None:
                self.kept.setdefault(number, bytearray()).extend(data)
            elif job.stdin >= 0 and os.write(job.stdin, data) < len(data):
                job.kill()
        elif "write" in body:
            self.write(number, body["write"], body["mode"])
        elif "run" in body or "launch" in body:
            self.start(number, body.get("run") or body["launch"], "launch" in body)
        elif "clock" in body:
            self.say(id=number, ended=0, clock=time.time_ns())
        elif job is not None and "kill" in body:
            job.kill()
        elif job is not None and job.stdin >= 0:
            os.close(job.stdin)
            job.stdin = -1

    def write(self, number: int, path: str, mode: int) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(self.kept.pop(number, b""))
        os.chmod(path, mode)
        self.say(id=number, ended=0)

    def start(self, number: int, argv: list[str], held: bool) -> None:
        job = Job(number, held)
        ends = [*self.input_of(job), *os.pipe(), *os.pipe()]
        stdin, job.stdin, out, stdout, err, stderr = ends
        try:
            job.pid = spawned(self.codes, argv, stdin, stdout, stderr)
        except BaseException:
            for end in ends:
                if end >= 0:
                    os.close(end)
            raise
        for theirs in (stdin, stdout, stderr):
            os.close(theirs)
        job.pidfd = os.pidfd_open(job.pid)
        job.streams = {out: "out", err: "err"}
        self.jobs[number] = job
        for descriptor in (out, err, job.pidfd):
            os.set_blocking(descriptor, False)
            self.watched[descriptor] = job
            self.epoll.register(descriptor, 0 if self.paused else select.EPOLLIN)

    def input_of(self, job: Job) -> tuple[int, int]:
        """What the program reads from, and our end of it, or -1."""
        if job.held:
            theirs, ours = os.pipe()
            os.set_blocking(ours, False)
            return theirs, ours
        given = self.kept.pop(job.number, b"")
        if not given:
            return os.open("/dev/null", os.O_RDONLY), -1
        file = os.memfd_create("input")
        with open(file, "wb", closefd=False) as whole:
            whole.write(given)
        os.lseek(file, 0, os.SEEK_SET)
        return file, -1

    def hear(self, job: Job, ready: int) -> None:
        if ready != job.pidfd:
            self.drain(job, ready)
        else:
            # What was heard may be of a program that had the same descriptor before.
            ended, how = os.waitpid(job.pid, os.WNOHANG)
            if not ended:
                return
            job.status = os.waitstatus_to_exitcode(how)
            self.let_go(job, job.pidfd)
        # As over SSH, a program has ended when nothing holds its output open any more.
        if job.status is not None and not job.streams:
            self.finish(job)

    def drain(self, job: Job, descriptor: int) -> None:
        """Takes a piece of what the program printed."""
        name = job.streams[descriptor]
        try:
            piece = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        if not piece:
            self.let_go(job, descriptor)
            return
        held = job.printed[name] + piece
        # The output of a short command travels with its end.
        if job.held or len(held) > PIECE // 2:
            for at in range(0, len(held), PIECE):
                self.say(id=job.number, **{name: encoded(held[at : at + PIECE])})
            held = b""
        job.printed[name] = held

    def let_go(self, job: Job, descriptor: int) -> None:
        self.epoll.unregister(descriptor)
        del self.watched[descriptor]
        if descriptor == job.pidfd:
            job.pidfd = -1
        job.streams.pop(descriptor, None)
        os.close(descriptor)

    def finish(self, job: Job) -> None:
        if job.stdin >= 0:
            os.close(job.stdin)
        if job.wanted and job.status is not None:
            last = {name: encoded(data) for name, data in job.printed.items() if data}
            self.say(id=job.number, **last, ended=job.status if job.status >= 0 else 128 - job.status)
            del self.jobs[job.number]


def main() -> None:
    helper = Helper(port_of(sys.argv[1]), Codes())
    for folder in sys.argv[2:]:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.endswith(".py"):
                helper.codes.of(f"{folder}/{name}")
    gc.collect()
    # The pages of what is loaded then stay shared with the programs that are forked.
    gc.freeze()
    helper.serve()


if __name__ == "__main__":
    main()
