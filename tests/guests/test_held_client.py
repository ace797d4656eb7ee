"""The start line, with the real program and a real client on this machine."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.processes import children
from tests.waiting import until
from vmlab.guests import held_client
from vmlab.guests.channel import Channel, payload_file
from vmlab.guests.held_client import HeldClient, TrueStart
from vmlab.guests.host_shell import HostChannel
from vmlab.guests.payload.start_line import Family
from vmlab.model.concurrency import within
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.workloads.shell import Completed
from vmlab.workloads.workload_steps import Client


class LocalPlace:
    """This machine as a place, without a chroot; `shift` seconds are added to its wall clock.

    `pause` is for how many seconds the start line relays nothing after a line, where that is not as usual.
    """

    name = "here"
    address = "127.0.0.1"

    def __init__(self, folder: Path, shift: float = 0.0, pause: float | None = None) -> None:
        program = payload_file("start_line.py").decode()
        if pause is not None:
            assert program.count("\nPAUSE = 0.5\n") == 1
            program = program.replace("\nPAUSE = 0.5\n", f"\nPAUSE = {pause!r}\n")
        self._program = folder / "start_line.py"
        self._program.write_text(program.replace("time.time()", f"(time.time() + {shift!r})"))

    async def launch(self, argv: list[str]) -> Channel:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(self._program),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return HostChannel(process)

    async def run(self, *_: object, **__: object) -> Completed:
        raise AssertionError("not needed here")

    async def write(self, *_: object, **__: object) -> None:
        raise AssertionError("not needed here")


def shell_client(script: str, deadline: float = 120.0) -> Client:
    return Client(argv=("sh", "-c", script), deadline=deadline)


async def run_to_end(held: HeldClient, ahead: float, deadline: float = 120.0) -> tuple[list[str], list[TrueStart]]:
    starts: list[TrueStart] = []
    await held.measure_clock()
    await held.start_at(time.monotonic() + ahead)
    return [line async for line in held.follow(starts.append, deadline)], starts


async def test_the_client_starts_at_the_broadcast_time_in_a_clock_that_is_off_by_minutes(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path, shift=-300.0)
    began = time.monotonic()
    held = await HeldClient.hold(
        place, place, shell_client("echo one; echo two >&2; sleep 0.2; echo three; exit 3"), 120
    )
    offset = await held.measure_clock()
    assert offset.seconds == pytest.approx(time.time() - time.monotonic() - 300.0, abs=offset.uncertainty + 0.001)
    lines, starts = await run_to_end(held, 0.3)
    assert lines == ["one", "three"]
    assert held.finished.status == 3
    assert held.finished.stderr == "two\n"
    took = time.monotonic() - began
    assert 0.2 <= held.finished.seconds <= took
    (start,) = starts
    assert -start.uncertainty <= start.late <= took
    await held.close()


async def test_the_client_does_not_run_before_the_start(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    mark = tmp_path / "ran"
    held = await HeldClient.hold(place, place, shell_client(f"touch {mark}"), 120)
    await held.measure_clock()
    assert not mark.exists()
    await run_to_end(held, 0.1)
    assert mark.exists()
    await held.close()


async def test_a_client_that_does_not_exist_ends_with_127_and_says_so(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, Client(argv=("no-such-program",), deadline=60), 120)
    await run_to_end(held, 0.05)
    assert held.finished.status == 127
    assert "no-such-program" in held.finished.stderr
    await held.close()


async def test_a_killed_client_is_told_by_its_signal(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("kill -9 $$"), 120)
    await run_to_end(held, 0.05)
    assert held.finished.status == -9
    await held.close()


async def test_a_client_past_its_deadline_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = LocalPlace(tmp_path)
    child = tmp_path / "child"

    @asynccontextmanager
    async def once_it_has_a_child(_seconds: float, late: str) -> AsyncIterator[None]:
        """A deadline that passes when the client has a child, however long that takes."""
        await until(lambda: child.exists() and child.read_text(), "that the client has a child")
        async with within(0, late):
            yield

    held = await HeldClient.hold(place, place, shell_client(f"sleep 3600 & echo $! >{child}; wait"), 120)
    await held.measure_clock()
    await held.start_at(time.monotonic() + 0.05)
    monkeypatch.setattr(held_client, "within", once_it_has_a_child)
    with pytest.raises(DeadlineExceeded, match="did not end"):
        async for _ in held.follow(lambda start: None, 120):
            raise AssertionError("it says nothing")
    process = psutil.Process(int(child.read_text()))
    await held.close()
    await until(lambda: _is_over(process), "the end of the child")


def _is_over(process: psutil.Process) -> bool:
    """Whether it has ended, reaped or not."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _found(mark: str, of_it: bool) -> psutil.Process | None:
    """The client whose last word is `mark`, or what it has started."""
    for one in psutil.Process().children(recursive=True):
        # Others of this process may have ended; a zombie has no command line either.
        with suppress(psutil.NoSuchProcess):
            if one.cmdline()[-1:] == [mark]:
                return next(iter(one.children()), None) if of_it else one
    return None


_THREAD = """import subprocess, sys, threading
threading.Thread(target=subprocess.run, args=[["sh", "-c", sys.argv[1]]]).start()
"""


@pytest.mark.parametrize("started_by", ["", "the client", "a thread of the client"])
async def test_a_client_that_is_stopped_tells_for_how_long(started_by: str, tmp_path: Path) -> None:
    """Nobody but its start line sees a process inside a guest."""
    place, go = LocalPlace(tmp_path), tmp_path / "go"
    waits = f"while [ ! -e {go} ]; do sleep 0.1; done"
    argv = {
        "": ("sh", "-c", waits),
        "the client": ("sh", "-c", f'sh -c "{waits}"; true'),
        "a thread of the client": (sys.executable, "-I", "-c", _THREAD, f"{waits}; true"),
    }[started_by]
    held = await HeldClient.hold(place, place, Client((*argv, str(go)), deadline=120.0), 120)
    following = asyncio.ensure_future(run_to_end(held, 0.1))
    await until(lambda: held.started is not None and _found(str(go), bool(started_by)), "it works", run=following)
    victim = _found(str(go), bool(started_by))
    assert victim is not None
    victim.suspend()
    await asyncio.sleep(4)
    go.touch()
    victim.resume()
    await following
    assert held.finished.status == 0
    assert 1 < held.stopped_seconds <= held.finished.seconds
    await held.close()


async def test_a_child_that_comes_later_is_looked_at_until_its_parent_has_ended() -> None:
    """After that the watch of the whole guest tells of it."""
    script = "read a; sh -c 'sleep 600 & echo $!; read b'; read c"
    pipe = asyncio.subprocess.PIPE
    client = await asyncio.create_subprocess_exec("sh", "-c", script, stdin=pipe, stdout=pipe)
    assert client.stdin is not None and client.stdout is not None
    family = Family(client.pid)
    assert len(family.states()) == 1
    client.stdin.write(b"\n")
    child = psutil.Process(int(await client.stdout.readline()))
    try:
        child.suspend()
        await until(lambda: family.states()[2:] == [b"T"], "that it is seen to be stopped")
        client.stdin.write(b"\n")
        await until(lambda: len(family.states()) == 1, "that its parent has ended")
    finally:
        child.kill()
        await client.communicate(b"\n")


async def test_a_stop_before_the_common_start_is_none_of_the_run(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("true"), 120)
    (start_line,) = children(tmp_path / "start_line.py")
    (waiting,) = start_line.children()
    waiting.suspend()
    await asyncio.sleep(1)
    # It is told of the stop before it answers.
    await held.measure_clock()
    waiting.resume()
    await run_to_end(held, 0.1)
    assert held.stopped_seconds == 0.0
    await held.close()


async def test_a_client_that_nobody_stops_was_not_stopped(tmp_path: Path) -> None:
    """However long it was held before, and however much its children work and wait."""
    place = LocalPlace(tmp_path)
    script = "for n in 1 2 3 4 5 6; do timeout 0.3 sh -c 'while :; do :; done'; sleep 0.3; echo $n; done; true"
    held = await HeldClient.hold(place, place, shell_client(script), 120)
    await asyncio.sleep(3)
    await run_to_end(held, 0.1)
    assert held.stopped_seconds == 0.0
    await held.close()


async def test_a_start_line_that_dies_is_an_error_and_not_an_end(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("kill -9 $PPID; sleep 2"), 120)
    with pytest.raises(GuestError, match="lost the client"):
        await run_to_end(held, 0.05)
    await held.close()


async def test_long_output_and_bytes_that_are_not_utf8_come_through(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("seq 1 20000; printf 'caf\\351\\rlast'"), 120)
    lines, _ = await run_to_end(held, 0.05)
    assert lines[:20000] == [str(n) for n in range(1, 20001)]
    assert lines[20000:] == ["caf\N{REPLACEMENT CHARACTER}", "last"]
    await held.close()


def told_after(folder: Path, *lines: str) -> str:
    """A script that says each line once a file of that name is there, and `ended` where it ends."""
    waits = (f"until [ -e {folder}/{line} ]; do sleep 0.02; done; echo {line}" for line in lines)
    return "; ".join([*waits, f"touch {folder}/ended"])


async def test_lines_are_not_relayed_in_a_pause_and_the_end_is_at_once(tmp_path: Path) -> None:
    """A line more costs the client the time of its guest's only processor."""
    place = LocalPlace(tmp_path, pause=3600.0)
    (tmp_path / "a").touch()
    held = await HeldClient.hold(place, place, shell_client(told_after(tmp_path, "a", "b", "c")), 120)
    await held.measure_clock()
    await held.start_at(time.monotonic() + 0.05)
    heard: list[tuple[str, bool]] = []
    async for line in held.follow(lambda start: None, 120):
        heard.append((line, (tmp_path / "ended").exists()))
        for following in "bc":
            (tmp_path / following).touch()
    assert heard == [("a", False), ("b", True), ("c", True)]
    await held.close()


async def test_a_pause_ends_while_the_client_works(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    (tmp_path / "a").touch()
    held = await HeldClient.hold(place, place, shell_client(told_after(tmp_path, *"abc")), 120)
    await held.measure_clock()
    await held.start_at(time.monotonic() + 0.05)
    heard: list[tuple[str, bool]] = []
    async for line in held.follow(lambda start: None, 120):
        heard.append((line, (tmp_path / "ended").exists()))
        # The client waits for somebody who has heard it.
        (tmp_path / chr(ord(line) + 1)).touch()
    assert heard[:2] == [("a", False), ("b", False)] and heard[2][0] == "c"
    await held.close()


async def test_what_a_client_prints_in_a_pause_has_room(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    room = "import fcntl; print(*(fcntl.fcntl(stream, fcntl.F_GETPIPE_SZ) for stream in (1, 2)))"
    # The second part is more than a pipe holds as a rule, and comes within the pause after the first.
    script = f"{sys.executable} -I -c '{room}'; seq 1 100000"
    held = await HeldClient.hold(place, place, shell_client(script), 120)
    lines, _ = await run_to_end(held, 0.05)
    assert [int(size) for size in lines[0].split()] == [2**20, 2**20]
    assert lines[1:] == [str(number) for number in range(1, 100001)]
    await held.close()


class LateChannel:
    """A channel on which the end of a client arrives three seconds late."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.send, self.close = channel.send, channel.close

    async def receive(self) -> str:
        line = await self._channel.receive()
        if '"ended"' in line:
            await asyncio.sleep(3)
        return line


async def test_how_long_a_client_worked_is_known_where_its_end_is_heard_late(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path, shift=-300.0)
    held = await HeldClient.hold(place, place, shell_client("sleep 0.4"), 120)
    held._channel = LateChannel(held._channel)
    await run_to_end(held, 0.1)
    span = await held.host_span(120)
    # Between the readings of two clocks a busy machine may do something else.
    assert span.seconds == pytest.approx(held.finished.seconds, abs=span.uncertainty + 0.5)
    assert span.uncertainty < 2
    await held.close()


async def test_a_clock_of_the_host_s_that_is_set_meanwhile_changes_no_span(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As chronyd's makestep does; the place has a clock of its own."""
    place, clock = LocalPlace(tmp_path), time.time
    held = await HeldClient.hold(place, place, shell_client("sleep 0.1"), 120)
    await run_to_end(held, 0.1)
    monkeypatch.setattr(time, "time", lambda: clock() + 100)
    span = await held.host_span(120)
    assert span.seconds == pytest.approx(held.finished.seconds, abs=span.uncertainty + 0.5)
    await held.close()


async def test_a_client_that_prints_without_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_client, "MOST_PRINTED", 100_000)
    held = await HeldClient.hold(place := LocalPlace(tmp_path), place, shell_client("yes"), 120)
    with pytest.raises(GuestError, match=r"client sh printed more than 97\.7 KiB"):
        await run_to_end(held, 0.05)
    await held.close()


class SayingPlace(LocalPlace):
    """A place whose start line is ready, and then says what the test says; `lines` are of JSON."""

    def __init__(self, folder: Path, *lines: str) -> None:
        super().__init__(folder)
        self._lines = ['{"ready": true}', *lines]

    async def launch(self, argv: list[str]) -> Channel:
        place = self

        class Saying:
            async def send(self, line: str) -> None:
                pass

            async def receive(self) -> str:
                return place._lines.pop(0) if place._lines else ""

            async def close(self) -> None:
                pass

        return Saying()


PONG = '{"pong": 0, "clock": 1.0}'


@pytest.mark.parametrize(
    "line",
    [
        '{"started": "noon"}',
        '{"started": Infinity}',
        '{"started": 1e999}',
        '{"started": 1e150}',
        '{"started": -1e13}',
        '{"out": 7}',
        '{"err": ["a"]}',
        '{"ended": {}}',
        '{"ended": []}',
        '{"ended": {"status": "0", "seconds": 1.0, "clock": 1.0}}',
        '{"ended": {"status": 0, "seconds": -1.0, "clock": 1.0}}',
        '{"ended": {"status": 0, "seconds": NaN, "clock": 1.0}}',
        '{"ended": {"status": 0, "seconds": 1e150, "clock": 1.0}}',
        '{"ended": {"status": 18446744073709551616, "seconds": 1.0, "clock": 1.0}}',
        "[" * 100_000,
        "\x1b[2J",
    ],
)
async def test_what_a_hostile_guest_says_is_a_guests_error(line: str, tmp_path: Path) -> None:
    place = SayingPlace(tmp_path, *[PONG] * 9, line)
    held = await HeldClient.hold(place, place, shell_client("true"), deadline=60)
    with pytest.raises(GuestError, match="the start line said"):
        await run_to_end(held, 0.0)


@pytest.mark.parametrize("line", ['{"pong": 0}', '{"pong": 0, "clock": []}', '{"clock": 1}'])
async def test_a_clock_that_is_none_is_a_guests_error(line: str, tmp_path: Path) -> None:
    place = SayingPlace(tmp_path, line)
    held = await HeldClient.hold(place, place, shell_client("true"), deadline=60)
    with pytest.raises(GuestError, match="the start line said"):
        await held.measure_clock()
