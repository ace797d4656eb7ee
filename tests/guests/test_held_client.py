"""The start line, with the real program and a real client on this machine."""

import asyncio
import sys
import time
from pathlib import Path

import pytest

from vmlab.guests import held_client
from vmlab.guests.channel import Channel
from vmlab.guests.held_client import HeldClient, TrueStart
from vmlab.guests.host_shell import HostChannel
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.workloads.contract import Client, Completed


class LocalPlace:
    """This machine as a place, without a chroot; `shift` seconds are added to its wall clock."""

    name = "here"
    address = "127.0.0.1"

    def __init__(self, folder: Path, shift: float = 0.0) -> None:
        program = held_client.start_line_program().decode()
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


def shell_client(script: str, deadline: float = 10.0) -> Client:
    return Client(argv=("sh", "-c", script), deadline=deadline)


async def run_to_end(held: HeldClient, ahead: float, deadline: float = 10.0) -> tuple[list[str], list[TrueStart]]:
    starts: list[TrueStart] = []
    await held.measure_clock()
    await held.start_at(time.time() + ahead)
    return [line async for line in held.follow(starts.append, deadline)], starts


async def test_the_client_starts_at_the_broadcast_time_in_a_clock_that_is_off_by_minutes(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path, shift=-300.0)
    held = await HeldClient.hold(
        place, place, shell_client("echo one; echo two >&2; sleep 0.2; echo three; exit 3"), 10
    )
    offset = await held.measure_clock()
    assert offset.seconds == pytest.approx(-300.0, abs=0.05)
    lines, starts = await run_to_end(held, 0.3)
    assert lines == ["one", "three"]
    assert held.finished.status == 3
    assert held.finished.stderr == "two\n"
    assert held.finished.seconds == pytest.approx(0.2, abs=0.15)
    assert len(starts) == 1
    assert -0.02 <= starts[0].late < 0.2
    await held.close()


async def test_the_client_does_not_run_before_the_start(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    mark = tmp_path / "ran"
    held = await HeldClient.hold(place, place, shell_client(f"touch {mark}"), 10)
    await held.measure_clock()
    assert not mark.exists()
    await run_to_end(held, 0.1)
    assert mark.exists()
    await held.close()


async def test_a_client_that_does_not_exist_ends_with_127_and_says_so(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, Client(argv=("no-such-program",), deadline=5), 10)
    await run_to_end(held, 0.05)
    assert held.finished.status == 127
    assert "no-such-program" in held.finished.stderr
    await held.close()


async def test_a_killed_client_is_told_by_its_signal(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("kill -9 $$"), 10)
    await run_to_end(held, 0.05)
    assert held.finished.status == -9
    await held.close()


async def test_a_client_past_its_deadline_is_killed_with_its_children(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    mark = tmp_path / "survived"
    held = await HeldClient.hold(place, place, shell_client(f"sleep 1.5; touch {mark}"), 10)
    with pytest.raises(DeadlineExceeded, match="did not end"):
        await run_to_end(held, 0.05, deadline=0.4)
    await held.close()
    time.sleep(1.6)
    assert not mark.exists()


async def test_a_start_line_that_dies_is_an_error_and_not_an_end(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("kill -9 $PPID; sleep 2"), 10)
    with pytest.raises(GuestError, match="lost the client"):
        await run_to_end(held, 0.05)
    await held.close()


async def test_long_output_and_bytes_that_are_not_utf8_come_through(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("seq 1 20000; printf 'caf\\351\\rlast'"), 10)
    lines, _ = await run_to_end(held, 0.05)
    assert lines[:20000] == [str(n) for n in range(1, 20001)]
    assert lines[20000:] == ["caf\N{REPLACEMENT CHARACTER}", "last"]
    await held.close()


async def test_lines_are_relayed_in_pauses_and_the_end_at_once(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    held = await HeldClient.hold(place, place, shell_client("echo a; sleep 0.05; echo b; sleep 2; echo c"), 20)
    await held.measure_clock()
    await held.start_at(time.time() + 0.05)
    heard = {line: time.monotonic() async for line in held.follow(lambda start: None, 20)}
    # A line more costs the client the time of its guest's only processor.
    assert heard["b"] - heard["a"] > 0.4
    assert heard["c"] - heard["b"] > 0.4
    assert list(heard) == ["a", "b", "c"]
    await held.close()


async def test_what_a_client_prints_in_a_pause_has_room(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    room = "import fcntl; print(*(fcntl.fcntl(stream, fcntl.F_GETPIPE_SZ) for stream in (1, 2)))"
    # The second part is more than a pipe holds as a rule, and comes within the pause after the first.
    script = f"{sys.executable} -I -c '{room}'; seq 1 100000"
    held = await HeldClient.hold(place, place, shell_client(script, 20), 20)
    lines, _ = await run_to_end(held, 0.05, 20)
    assert [int(size) for size in lines[0].split()] == [2**20, 2**20]
    assert lines[1:] == [str(number) for number in range(1, 100001)]
    await held.close()


class LateChannel:
    """A channel on which the end of a client arrives a second late."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.send, self.close = channel.send, channel.close

    async def receive(self) -> str:
        line = await self._channel.receive()
        if '"ended"' in line:
            await asyncio.sleep(1)
        return line


async def test_how_long_a_client_worked_is_known_where_its_end_is_heard_late(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path, shift=-300.0)
    held = await HeldClient.hold(place, place, shell_client("sleep 0.4"), 10)
    held._channel = LateChannel(held._channel)
    await run_to_end(held, 0.1)
    span = await held.host_span(10)
    assert span.seconds == pytest.approx(held.finished.seconds, abs=span.uncertainty + 0.01)
    assert span.uncertainty < 0.2
    await held.close()
