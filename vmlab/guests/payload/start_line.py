"""Runs inside a guest (or the host's chroot): holds a client ready, starts it at one given time, and tells the truth.

Only the standard library of Python 3.11, started with ``-I -S``. It speaks JSON lines. In, on standard input::

    {"argv": [...], "environment": {...}, "stdin": null}     once, first
    {"ping": N}                                              any time before the start
    {"start": SECONDS}                                       the start, by this machine's own wall clock

and out, on standard output::

    {"ready": true} · {"pong": N, "clock": SECONDS} · {"started": SECONDS, "missed": SECONDS}
    {"out": LINE} · {"err": LINE}
    {"ended": {"status": N, "seconds": S, "clock": SECONDS}}

The client is forked beforehand and stamps the clock just before it calls exec, so that neither the fork nor this
program's own reading stands between the deadline and the client. When standard input closes, the client is killed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import time

# Type checkers take this name for true. Importing typing would cost a guest a tenth of a second under emulation.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Order = dict[str, Any]
STAMP = struct.Struct("=ddd")


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def wait_and_exec(order: Order, start_pipe: int, stamp_pipe: int, stdin: int, stdout: int, stderr: int) -> None:
    """The forked child: never returns."""
    os.setsid()
    for target, source in enumerate((stdin, stdout, stderr)):
        os.dup2(source, target)
    start = struct.unpack("=d", os.read(start_pipe, 8))[0]
    while (left := start - time.time()) > 0:
        time.sleep(left)
    clock, mono = time.time(), time.monotonic()
    os.write(stamp_pipe, STAMP.pack(clock, mono, clock - start))
    try:
        os.execvpe(order["argv"][0], order["argv"], {**os.environ, **order["environment"]})
    except OSError as error:
        os.write(2, f"{order['argv'][0]}: {error}\n".encode())
        os._exit(127)


def fork_client(order: Order) -> tuple[int, int, int, int, int, int]:
    """Returns the child's pid and our ends of its pipes: start (write), stamp (read), stdin (write), out, err."""
    start_r, start_w = os.pipe()
    stamp_r, stamp_w = os.pipe()
    in_r, in_w = os.pipe()
    out_r, out_w = os.pipe()
    err_r, err_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        # A client that still held its own standard input's other end would never see it close.
        for ours in (start_w, stamp_r, in_w, out_r, err_r):
            os.close(ours)
        wait_and_exec(order, start_r, stamp_w, in_r, out_w, err_w)
    for theirs in (start_r, stamp_w, in_r, out_w, err_w):
        os.close(theirs)
    return pid, start_w, stamp_r, in_w, out_r, err_r


class Relay:
    """Turns bytes of one stream into lines for the engine."""

    def __init__(self, descriptor: int, key: str) -> None:
        self.descriptor, self.key, self.rest = descriptor, key, b""

    def pump(self) -> bool:
        """Relays what there is; False at the end of the stream."""
        chunk = os.read(self.descriptor, 65536)
        lines = (self.rest + chunk).replace(b"\r", b"\n").split(b"\n")
        self.rest = b"" if not chunk else lines.pop()
        for line in lines if chunk else [part for part in lines if part]:
            say(**{self.key: line.decode("utf-8", "replace")})
        return bool(chunk)


class Orders:
    """Standard input, line by line, without blocking."""

    def __init__(self) -> None:
        self.rest = b""

    def read(self) -> list[Order] | None:
        """The messages that are there; None when the engine has gone."""
        chunk = os.read(0, 65536)
        if not chunk:
            return None
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]


def obey(message: Order, start_pipe: int) -> None:
    if "ping" in message:
        say(pong=message["ping"], clock=time.time())
    elif "start" in message:
        os.write(start_pipe, struct.pack("=d", message["start"]))


def kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)


def serve(orders: Orders, order: Order, queued: list[Order]) -> None:
    pid, start_pipe, stamp_pipe, stdin, out, err = fork_client(order)
    if order.get("stdin"):
        os.write(stdin, order["stdin"].encode())
    os.close(stdin)
    say(ready=True)
    for message in queued:
        obey(message, start_pipe)
    relays = {out: Relay(out, "out"), err: Relay(err, "err")}
    watched = {0, stamp_pipe, out, err}
    began = None
    while relays:
        for ready in select.select(list(watched), [], [])[0]:
            if ready == 0:
                messages = orders.read()
                if messages is None:
                    kill(pid)
                    watched.discard(0)
                for message in messages or ():
                    obey(message, start_pipe)
            elif ready == stamp_pipe:
                watched.discard(stamp_pipe)
                stamp = os.read(stamp_pipe, STAMP.size)
                if len(stamp) == STAMP.size:
                    clock, began, missed = STAMP.unpack(stamp)
                    say(started=clock, missed=missed)
            elif not relays[ready].pump():
                watched.discard(ready)
                del relays[ready]
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ended = time.monotonic()
    say(ended={"status": status, "seconds": ended - began if began is not None else 0.0, "clock": time.time()})


def main() -> None:
    orders = Orders()
    queued: list[Order] = []
    while not queued:
        messages = orders.read()
        if messages is None:
            return
        queued = messages
    serve(orders, queued[0], queued[1:])


main()
