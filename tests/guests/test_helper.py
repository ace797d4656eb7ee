"""The resident helper as a process of this machine, behind a channel that outlives its connections."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import vmlab
from vmlab.guests.channel import payload_file
from vmlab.guests.held_client import HeldClient
from vmlab.guests.helper_shell import HelperShell
from vmlab.guests.payload.helper_frames import HEAD, MARK, MOST, packed, take
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.workloads.workload_steps import Client

PATIENCE = 60.0
START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from vmlab.guests.payload.helper import main; main()"
WHO = """import os, sys
print(os.getppid(), "vmlab.guests.payload.helper" in sys.modules, sys.argv[1:], __name__)
"""


@dataclass
class Port:
    """A channel as QEMU gives it: the helper's end stays open while hosts come and go."""

    path: Path
    ours: socket.socket
    pid: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()

        async def host(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.writers.append(writer)

            async def down() -> None:
                while piece := await reader.read(65536):
                    await loop.sock_sendall(self.ours, piece)

            async def up() -> None:
                while piece := await loop.sock_recv(self.ours, 65536):
                    writer.write(piece)
                    await writer.drain()

            rising = asyncio.ensure_future(up())
            with suppress(OSError):
                await down()
            rising.cancel()
            writer.close()

        return await asyncio.start_unix_server(host, self.path)

    def cut(self) -> None:
        """The connection with the host is lost."""
        for writer in self.writers:
            writer.transport.abort()


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[Port]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    root = str(Path(vmlab.__file__).parent.parent)
    argv = (sys.executable, "-I", "-S", "-c", START, root, f"fd:{theirs.fileno()}", str(tmp_path))
    process = await asyncio.create_subprocess_exec(*argv, pass_fds=[theirs.fileno()])
    theirs.close()
    channel = Port(tmp_path / "port", ours, process.pid)
    server = await channel.serve()
    yield channel
    channel.cut()
    server.close()
    process.kill()
    await process.wait()
    ours.close()


@pytest.fixture
async def shell(port: Port) -> AsyncIterator[HelperShell]:
    opened = await connect(port)
    yield opened
    await opened.close()


async def connect(port: Port) -> HelperShell:
    opened = await HelperShell.connect("web", "198.18.0.12", port.path, PATIENCE)
    assert opened is not None
    return opened


async def test_a_command_runs_to_its_end_with_both_outputs_and_its_status(shell: HelperShell) -> None:
    ended = await shell.run(["sh", "-c", "echo one; echo two >&2; exit 3"], check=False)
    assert (ended.status, ended.stdout, ended.stderr) == (3, "one\n", "two\n")
    with pytest.raises(GuestError, match="web: sh -c 'exit 7' exited with 7"):
        await shell.run(["sh", "-c", "exit 7"])
    assert (await shell.run(["sh", "-c", "kill -9 $$"], check=False)).status == 137
    assert (await shell.run(["no-such-program"], check=False)).status == 127


async def test_what_a_program_left_behind_prints_belongs_to_its_output(shell: HelperShell, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    running = asyncio.ensure_future(shell.run(["sh", "-c", f"(read go <{tmp_path}/go; echo late) & echo early"]))
    await shell.run(["sh", "-c", f"echo >{tmp_path}/go"])
    assert sorted((await running).stdout.split()) == ["early", "late"]


async def test_much_input_and_much_output_come_through_whole(shell: HelperShell) -> None:
    text = "".join(f"{number}\n" for number in range(200_000))
    assert (await shell.run(["cat"], stdin=text)).stdout == text
    several = await asyncio.gather(*(shell.run(["seq", str(count)]) for count in (1, 50_000, 3)))
    assert [len(one.stdout.splitlines()) for one in several] == [1, 50_000, 3]


async def test_a_program_of_the_labs_is_forked_and_ends_as_under_an_interpreter_of_its_own(
    port: Port, shell: HelperShell, tmp_path: Path
) -> None:
    def python(name: str, text: str) -> list[str]:
        (tmp_path / name).write_text(text)
        return ["/usr/bin/python3", "-I", "-S", str(tmp_path / name), "a b"]

    assert (await shell.run(python("who.py", WHO))).stdout == f"{port.pid} True ['a b'] __main__\n"
    assert (await shell.run(python("who.py", WHO.replace("__name__", "3")))).stdout == f"{port.pid} True ['a b'] 3\n"
    ended = await shell.run(python("exits.py", "import sys\nsys.exit('no room')"), check=False)
    assert (ended.status, ended.stderr) == (1, "no room\n")
    ended = await shell.run(python("fails.py", "1 / 0"), check=False)
    assert ended.status == 1
    assert ended.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    ended = await shell.run(python("wrong.py", "no python"), check=False)
    assert ended.status == 1
    assert "wrong.py" in ended.stderr
    assert (await shell.run(python("fine.py", "import sys\nsys.exit(5)"), check=False)).status == 5


async def test_a_file_is_written_with_its_mode_and_its_folders(shell: HelperShell, tmp_path: Path) -> None:
    content = os.urandom(100_000)
    await shell.write(str(tmp_path / "new/folder/file"), content, mode=0o600)
    assert (tmp_path / "new/folder/file").read_bytes() == content
    assert (tmp_path / "new/folder/file").stat().st_mode & 0o777 == 0o600
    with pytest.raises(GuestError, match="web: cannot write /proc/no/file"):
        await shell.write("/proc/no/file", b"")


async def test_a_program_that_takes_too_long_is_killed(shell: HelperShell, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    deadline = 1
    # On a busy machine it may be killed before it has told its number.
    while not (told.exists() and told.read_text()):
        with pytest.raises(DeadlineExceeded, match=f"web: sh took longer than {deadline} s"):
            await shell.run(["sh", "-c", f"echo $$ > {told}; exec sleep 3600"], deadline=deadline)
        deadline *= 2
    await gone(int(told.read_text()))


async def test_a_client_is_held_started_and_followed_through_it(shell: HelperShell, tmp_path: Path) -> None:
    await shell.write("/run/vmlab/start_line.py", payload_file("start_line.py"))
    client = Client(("sh", "-c", "read line; echo got $line"), 60.0, {}, "a word\n")
    held = await HeldClient.hold(shell, shell, client, PATIENCE)
    offset = await held.measure_clock()
    assert abs(offset.seconds - (time.time() - time.monotonic())) <= offset.uncertainty + 0.001
    await held.start_at(0.0)
    assert [line async for line in held.follow(lambda start: None, PATIENCE)] == ["got a word"]
    assert held.finished.status == 0
    await held.close()


async def test_bytes_of_an_earlier_connection_confuse_neither_side(port: Port) -> None:
    earlier = packed({"s": "old", "hello": True}) + packed({"s": "old", "id": 1, "run": ["id"]})
    os.write(port.ours.fileno(), b"\n{}" + earlier)
    os.write(port.ours.fileno(), MARK + b"%08x" % (MOST - 1) + b'{"s": "old", "in": "')
    shell = await connect(port)
    assert (await shell.run(["echo", "here"])).stdout == "here\n"
    await shell.close()


async def test_what_a_session_began_ends_with_the_next_hello(port: Port, tmp_path: Path) -> None:
    first, told = await connect(port), tmp_path / "pid"
    channel = await first.launch(["sh", "-c", f"echo $$ > {told}; echo told; exec sleep 3600"])
    assert await channel.receive() == "told"
    job = asyncio.ensure_future(channel.receive())
    port.cut()
    with pytest.raises(GuestError, match="web: the connection to its helper was lost"):
        await job
    await first.close()
    second = await connect(port)
    await gone(int(told.read_text()))
    assert (await second.run(["echo", "here"])).stdout == "here\n"
    await second.close()


async def test_a_connection_that_is_closed_ends_the_wait_for_answers(shell: HelperShell) -> None:
    waiting = asyncio.ensure_future(shell.run(["sleep", "3600"]))
    await shell.run(["true"])
    await shell.close()
    with pytest.raises(GuestError, match="lost"):
        await waiting
    with pytest.raises(GuestError, match="lost"):
        await shell.run(["true"])


async def test_a_helper_that_never_answers_is_given_up(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.guests.helper_shell.QUIET_SECONDS", 0.2)
    monkeypatch.setattr("vmlab.guests.helper_shell.SILENT_SECONDS", 0.5)
    shell = await connect(port)
    client = await shell.launch(["sleep", "600"])
    os.kill(port.pid, signal.SIGSTOP)
    with pytest.raises(
        GuestError, match=r"^web: the connection to its helper was lost: it has not answered for 0.5 s$"
    ):
        await asyncio.wait_for(client.receive(), PATIENCE)
    await shell.close()


@pytest.mark.parametrize(
    "said",
    [{"out": 7}, {"out": "a"}, {"ended": []}, {"ended": 0, "err": None}, {"id": []}, "deep"],
    ids=str,
)
async def test_what_a_hostile_helper_says_is_a_guests_error(said: Any, tmp_path: Path) -> None:
    left = asyncio.Event()

    async def hostile(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = bytearray()
        with suppress(OSError):
            await answer(reader, writer, buffer)
        writer.transport.abort()
        left.set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, buffer: bytearray) -> None:
        while piece := await reader.read(65536):
            buffer += piece
            for body in take(buffer):
                session = {"s": body["s"]}
                if "hello" in body:
                    writer.write(packed({**session, "hello": 1}))
                elif said == "deep":
                    text = b"[" * 60_000
                    writer.write(b"%c%08x%b\n" % (MARK, len(text), text))
                else:
                    writer.write(packed({**session, "id": body["id"], **said}))

    server = await asyncio.start_unix_server(hostile, tmp_path / "port")
    shell = await HelperShell.connect("web", "198.18.0.12", tmp_path / "port", PATIENCE)
    assert shell is not None
    with pytest.raises((GuestError, DeadlineExceeded)):
        await shell.run(["true"], deadline=2)
    await shell.close()
    await left.wait()
    server.close()
    await asyncio.sleep(0)


async def test_a_program_that_says_nothing_for_long_is_waited_for(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.guests.helper_shell.QUIET_SECONDS", 0.05)
    shell = await connect(port)
    assert (await shell.run(["sleep", "1"])).status == 0
    await shell.close()


async def test_nothing_wakes_it_while_nothing_is_asked(port: Port, shell: HelperShell) -> None:
    await shell.run(["true"])

    def scheduled() -> str:
        """Run time, waits and time slices: proc(5). One that spins has no voluntary switch, and is told by this."""
        return Path(f"/proc/{port.pid}/schedstat").read_text()

    before, now, end = "", scheduled(), time.monotonic() + 60
    # What it still had to do for the answer may take a while on a busy machine; one that looks round never rests.
    while before != now:
        assert time.monotonic() < end, "it never rests for a second"
        await asyncio.sleep(1.0)
        before, now = now, scheduled()


async def test_where_nobody_answers_there_is_no_shell(tmp_path: Path) -> None:
    assert await HelperShell.connect("web", "198.18.0.12", tmp_path / "none", 1.0) is None
    left = asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read()
        writer.transport.abort()
        left.set()

    server = await asyncio.start_unix_server(mute, tmp_path / "mute")
    assert await HelperShell.connect("web", "198.18.0.12", tmp_path / "mute", 0.2) is None
    await left.wait()
    server.close()
    await asyncio.sleep(0)


def test_frames_are_cut_anywhere_and_what_is_none_is_passed_over() -> None:
    bodies = [{"s": "a", "id": number, "text": "\x1e\n" * number} for number in range(4)]
    stream = b"noise" + b"".join(map(packed, bodies)) + MARK + b"zzzzzzzz" + packed({"s": "last"})
    assert json.loads(packed(bodies[1])[9:]) == bodies[1]
    for size in (1, 2, 7, len(stream)):
        buffer, found = bytearray(), []
        for at in range(0, len(stream), size):
            buffer += stream[at : at + size]
            found += take(buffer)
        assert found == [*bodies, {"s": "last"}]


@settings(max_examples=300)
@given(st.lists(st.sampled_from([MARK, b"-fffffff", b"+0000001", b"0x000001", b"0000_001", b"00000001", b"\n", b"7"])))
@example([MARK, b"-fffffff", b"XX"])
def test_what_is_left_of_a_stream_is_the_beginning_of_one_frame(pieces: list[bytes]) -> None:
    buffer = bytearray(b"".join(pieces))
    whole = buffer.count(MARK)
    assert all(type(body) is dict for body in take(buffer))
    assert buffer.count(MARK) <= min(1, whole)
    assert not buffer or (buffer.startswith(MARK) and set(buffer[1:HEAD]) <= set(b"0123456789abcdef"))


async def gone(pid: int) -> None:
    """Returns when the process is gone, or is a zombie of this test's own."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z":
                    return
            except OSError:
                return
            await asyncio.sleep(0.02)
