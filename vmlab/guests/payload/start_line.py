"""Runs inside a guest (or the host's chroot): holds a client ready, starts it at one given time, and tells the truth.

Only the standard library of Python 3.9, started with ``-I -S``. It speaks JSON lines. In, on standard input::

    {"argv": [...], "environment": {...}, "stdin": null}     once, first
    {"ping": N}                                              any time
    {"start": SECONDS}                                       the start, by this machine's own wall clock

and out, on standard output::

    {"ready": true} · {"pong": N, "clock": SECONDS} · {"started": SECONDS, "missed": SECONDS}
    {"out": LINE} · {"err": LINE}
    {"ended": {"status": N, "seconds": S, "clock": SECONDS, "stopped": S}}

What the client prints is relayed at most every PAUSE seconds, and at once when it ends, so that a client which prints
much shares its guest's processor with few encryptions.

The client is forked beforehand and stamps the clock just before it calls exec, so that neither the fork nor this
program's own reading stands between the deadline and the client. Stops of the client itself are told by the kernel;
its children, debuggers, and this program's own standstill, as by the freezer of a cgroup, are looked for once a second.
After the client's end, clocks are told until standard
input closes. When it closes before, the client is killed.
"""

from __future__ import annotations

import fcntl
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
    from collections.abc import Iterator
    from typing import Any

    Order = dict[str, Any]
STAMP = struct.Struct("=ddd")
PAUSE = 0.5
PIPE_BYTES = 2**20
F_SETPIPE_SZ = 1031
LOOK = 1.0
"""Seconds between two looks, each of which takes an emulated guest half a millisecond or so."""


said_seconds = 0.0
"""For how long this program waited for the engine to take what it said."""


def say(**message: Any) -> None:
    global said_seconds
    before = time.monotonic()
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()
    said_seconds += time.monotonic() - before


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
    for pipe in (out_r, err_r):
        # The client must not wait for room during a pause.
        fcntl.fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
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
        self.resumes = 0.0

    def pump(self) -> bool:
        """Relays what there is; False at the end of the stream."""
        chunk = os.read(self.descriptor, 65536)
        lines = (self.rest + chunk).replace(b"\r", b"\n").split(b"\n")
        self.rest = b"" if not chunk else lines.pop()
        for line in lines if chunk else [part for part in lines if part]:
            say(**{self.key: line.decode("utf-8", "replace")})
        return bool(chunk)


class Streams:
    """What the client prints; none is read for a while after it was, unless the client has closed it."""

    def __init__(self, poll: select.poll, relays: list[Relay]) -> None:
        self.poll = poll
        self.open = {relay.descriptor: relay for relay in relays}
        for descriptor in self.open:
            poll.register(descriptor, select.POLLIN)

    def pump(self, descriptor: int, happened: int) -> None:
        relay = self.open[descriptor]
        more = relay.pump()
        while more and happened & (select.POLLHUP | select.POLLERR):
            more = relay.pump()
        if not more:
            self.poll.unregister(descriptor)
            del self.open[descriptor]
            return
        relay.resumes = time.monotonic() + PAUSE
        # Without an event to wait for, the end of the stream is still reported.
        self.poll.modify(descriptor, 0)

    def resume(self) -> float | None:
        """Watches again what has paused for long enough; milliseconds until the next pause ends, None for none."""
        now, left = time.monotonic(), []
        for relay in self.open.values():
            if relay.resumes > now:
                left.append(relay.resumes - now)
            elif relay.resumes:
                relay.resumes = 0.0
                self.poll.modify(relay.descriptor, select.POLLIN)
        return 1000 * min(left) + 1 if left else None


class Stops:
    """For how long the client, or what it started, stood still: stopped, by a debugger too, or frozen with all here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.told = self.looked = self.frozen = 0.0
        self.since: float | None = None
        self.was_stopped, self.last, self.own = False, time.monotonic(), own_times()
        self.family = Family(pid)
        self.heard, wake = os.pipe()
        for end in (self.heard, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def begin(self, began: float) -> None:
        """The client works since then. What stopped it before is over, even if nobody has told so yet."""
        self.told, self.last, self.own = 0.0, time.monotonic(), own_times()
        if self.since is not None and self.since < began:
            self.since = None

    def hear(self) -> None:
        """Takes what the kernel says of the client."""
        os.read(self.heard, 4096)
        try:
            while (what := os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)) is not None:
                now = time.monotonic()
                if self.since is not None:
                    self.told += now - self.since
                self.since = None if what.si_code == os.CLD_CONTINUED else now
        except ChildProcessError:
            # It has ended, and is not stopped.
            pass

    def look(self) -> float:
        """Looks where it is time to; milliseconds until the next look."""
        passed = time.monotonic() - self.last
        if passed >= LOOK:
            stopped = any(state in b"Tt" for state in self.family.states())
            self.looked += passed * (stopped + self.was_stopped) / 2
            own = own_times()
            # Who waits for a processor, a page or the engine is not stopped.
            if own[1] == self.own[1] and passed - (own[0] - self.own[0]) > 3 * LOOK:
                self.frozen += passed - LOOK
            self.was_stopped, self.own = stopped, own
            self.last += passed
            passed = 0.0
        return 1000 * (LOOK - passed) + 1

    def seconds(self) -> float:
        return max(self.told, self.looked, self.frozen)


def own_times() -> tuple[float, int]:
    """Seconds for which this process ran, or waited for a processor or the engine; how often it waited for a page."""
    try:
        with open("/proc/self/schedstat", "rb") as times, open("/proc/self/stat", "rb") as stat:
            ran, waited, _ = times.read().split()
            return (int(ran) + int(waited)) / 1e9 + said_seconds, int(stat.read().rpartition(b")")[2].split()[9])
    except OSError:
        return time.monotonic(), 0


def read(path: str) -> bytes:
    """A small file; nothing where it is not there any more, or the kernel has none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Family:
    """A process and all that it has started, as long as their parents live."""

    def __init__(self, pid: int) -> None:
        self.pid, self.pids = pid, [pid]
        self.newest: list[bytes] = []

    def states(self) -> list[bytes]:
        """The letter of each one's state in proc(5)."""
        newest = read("/proc/loadavg").split()[-1:]
        if not newest or newest != self.newest:
            # Otherwise nothing has been forked anywhere since the last look.
            self.pids, self.newest = [*descent(self.pid)], newest
        found, parents = [], {os.getpid()}
        for pid in self.pids:
            fields = read(f"/proc/{pid}/stat").rpartition(b") ")[2].split(b" ", 2)
            if len(fields) > 1 and int(fields[1]) in parents:
                parents.add(pid)
                found.append(fields[0])
            else:
                # It has ended, or its parent has: the watch of the whole guest tells of it then.
                self.newest = []
        return found


def descent(pid: int) -> Iterator[int]:
    """A process and all below it. The kernel lists children by the thread that has forked them."""
    yield pid
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        for child in read(f"/proc/{pid}/task/{thread}/children").split():
            yield from descent(int(child))


class CommandLines:
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


def serve(orders: CommandLines, order: Order, queued: list[Order]) -> None:
    pid, start_pipe, stamp_pipe, stdin, out, err = fork_client(order)
    if order.get("stdin"):
        os.write(stdin, order["stdin"].encode())
    os.close(stdin)
    say(ready=True)
    for message in queued:
        obey(message, start_pipe)
    poll = select.poll()
    streams = Streams(poll, [Relay(out, "out"), Relay(err, "err")])
    stops = Stops(pid)
    for descriptor in (0, stamp_pipe, stops.heard):
        poll.register(descriptor, select.POLLIN)
    began = None
    while streams.open:
        pauses = streams.resume()
        looks = stops.look() if began is not None else None
        for ready, happened in poll.poll(min((one for one in (pauses, looks) if one is not None), default=None)):
            if ready == stops.heard:
                stops.hear()
            elif ready == 0:
                messages = orders.read()
                if messages is None:
                    kill(pid)
                    poll.unregister(0)
                for message in messages or ():
                    obey(message, start_pipe)
            elif ready == stamp_pipe:
                poll.unregister(stamp_pipe)
                stamp = os.read(stamp_pipe, STAMP.size)
                if len(stamp) == STAMP.size:
                    clock, began, missed = STAMP.unpack(stamp)
                    stops.begin(began)
                    say(started=clock, missed=missed)
            else:
                streams.pump(ready, happened)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    clock, ended = time.time(), time.monotonic()
    seconds = ended - began if began is not None else 0.0
    say(ended={"status": status, "seconds": seconds, "clock": clock, "stopped": min(seconds, stops.seconds())})
    while (messages := orders.read()) is not None:
        for message in messages:
            obey(message, start_pipe)


def main() -> None:
    orders = CommandLines()
    queued: list[Order] = []
    while not queued:
        messages = orders.read()
        if messages is None:
            return
        queued = messages
    serve(orders, queued[0], queued[1:])


if __name__ == "__main__":
    main()
