"""A guest with Windows over SSH, with a real server: words for cmd.exe, files over SFTP, and the start line here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import pytest

from tests.fakes.windows_guest import SOON, windows_guest
from vmlab.guests import held_client, windows_shell
from vmlab.guests.added_guest import missing_on_windows
from vmlab.guests.held_client import HeldClient, TrueStart
from vmlab.guests.windows_shell import WindowsShell, windows_command
from vmlab.model.errors import GuestError
from vmlab.workloads.workload_steps import Client


@dataclass
class Commands:
    """In the place of cmd.exe: remembers each line, and prints and ends as it was given."""

    out: bytes = b""
    err: bytes = b""
    status: int = 0
    lines: list[str] = field(default_factory=list)
    begun: float = 0.0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, line: str, process: asyncssh.SSHServerProcess[bytes]) -> int:
        self.lines.append(line)
        self.begun = time.monotonic()
        process.stdout.write(self.out)
        process.stderr.write(self.err)
        await self.go.wait()
        return self.status


@pytest.fixture
def commands() -> Commands:
    """Each ends at once."""
    made = Commands()
    made.go.set()
    return made


@pytest.fixture
async def shell(tmp_path: Path, commands: Commands) -> AsyncIterator[WindowsShell]:
    async with asyncio.timeout(SOON), windows_guest(tmp_path, commands) as made:
        yield made


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["fio", "--directory=C\\:/x", "--percentile_list=50:95"], "fio --directory=C\\:/x --percentile_list=50:95"),
        (["cmd.exe", "/d", "/c", "ver"], "cmd.exe /d /c ver"),
        (["fio", "--filename_format=file.$jobnum"], "fio --filename_format=file.$jobnum"),
        (["C:\\Program Files\\fio\\fio.exe"], '"C:\\Program Files\\fio\\fio.exe"'),
        (["x", "a & b | c > d ^ e (f)"], 'x "a & b | c > d ^ e (f)"'),
        (["x", ""], 'x ""'),
    ],
)  # fmt: skip
def test_cmd_and_the_program_read_each_word_as_it_is(argv: list[str], line: str) -> None:
    assert windows_command(argv) == line


@pytest.mark.parametrize("word", ["%PATH%", 'a"b', "a!b", "a\nb", "a\rb", "a\0b", "C:\\a b\\"])
def test_a_word_that_cmd_would_change_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="cannot be a word of a command of Windows"):
        windows_command(["x", word])


async def test_commands_arrive_quoted_and_their_end_comes_back(shell: WindowsShell, commands: Commands) -> None:
    commands.out, commands.status = b"said\r\n", 3
    done = await shell.run(["echo", "a b"], check=False)
    assert (done.status, done.stdout, commands.lines) == (3, "said\r\n", ['echo "a b"'])
    with pytest.raises(GuestError, match=r"win: echo exited with 3: said"):
        await shell.run(["echo"])


async def test_files_pass_without_a_command(
    shell: WindowsShell, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "C:/vmlab/vmlab-disk"
    await shell.make_folder("C:/vmlab/vmlab-disk")
    (own / "old").mkdir()
    (own / "old/file").write_bytes(b"x")
    await shell.make_folder("C:/vmlab/vmlab-disk")
    assert own.is_dir() and await shell.sizes("C:/vmlab/vmlab-disk") == {}
    await shell.write("C:/vmlab/vmlab-disk/report", b"{\r\n}\r\n")
    assert await shell.sizes("C:/vmlab/vmlab-disk") == {"report": 6}
    assert await shell.read("C:/vmlab/vmlab-disk/report") == "{\n}\n"
    monkeypatch.setattr(windows_shell, "MOST_PRINTED", 5)
    with pytest.raises(GuestError, match="win: C:/vmlab/vmlab-disk/report is larger than 5 B"):
        await shell.read("C:/vmlab/vmlab-disk/report")
    await shell.remove_folder("C:/vmlab/vmlab-disk")
    await shell.remove_folder("C:/vmlab/vmlab-disk")
    assert not own.exists() and commands.lines == []
    for asked in (shell.read("C:/no"), shell.sizes("C:/no")):
        with pytest.raises(GuestError, match=r"win: cannot .* C:/no"):
            await asked


async def _held(shell: WindowsShell, argv: tuple[str, ...] = ("fio", "--x=a b")) -> HeldClient:
    held = await HeldClient.hold(shell, shell, Client(argv, SOON), SOON)
    await held.measure_clock()
    return held


async def test_a_client_starts_at_the_moment_and_its_lines_come_one_by_one(
    shell: WindowsShell, commands: Commands
) -> None:
    commands.out, commands.err = b"one\rtwo\r\r\nthr\xc3\xa9e", b"remark\r\n"
    held = await _held(shell)
    assert commands.lines == []
    moment = time.monotonic() + 0.3
    starts: list[TrueStart] = []
    await held.start_at(moment)
    lines = [line async for line in held.follow(starts.append, SOON)]
    assert lines == ["one", "two", "thr\u00e9e"] and commands.lines == ['fio "--x=a b"']
    assert commands.begun >= moment and starts[0].host_mono >= commands.begun >= moment
    assert held.finished.status == 0 and held.finished.stderr == "remark\n"
    span = await held.host_span(SOON)
    assert span.seconds == pytest.approx(held.finished.seconds, abs=0.5) and span.uncertainty < 0.5
    await held.close()


async def test_a_clock_of_the_host_s_that_is_set_back_delays_no_client(
    shell: WindowsShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await _held(shell)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    await held.start_at(time.monotonic())
    assert [line async for line in held.follow(lambda _start: None, SOON)] == []
    await held.close()


async def test_a_client_that_prints_without_an_end_of_line_is_an_error(
    shell: WindowsShell, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_client, "MOST_PRINTED", 100_000)
    monkeypatch.setattr(windows_shell, "MOST_PRINTED", 100_000)
    commands.out = b"a" * 500_000
    commands.go.clear()
    held = await _held(shell)
    await held.start_at(time.monotonic())
    with pytest.raises(GuestError, match=r"^win: client fio printed more than 97\.7 KiB$"):
        async for _ in held.follow(lambda _start: None, SOON):
            pass
    await held.close()


async def test_a_long_line_comes_whole(shell: WindowsShell, commands: Commands) -> None:
    commands.out = b"a" * 500_000 + b"\nb\n" + b"c" * 300_000
    held = await _held(shell)
    await held.start_at(time.monotonic())
    lines = [line async for line in held.follow(lambda _start: None, SOON)]
    assert lines == ["a" * 500_000, "b", "c" * 300_000]
    await held.close()


async def test_the_status_of_a_client_is_told(shell: WindowsShell, commands: Commands) -> None:
    commands.status = 1
    held = await _held(shell)
    await held.start_at(time.monotonic())
    assert [line async for line in held.follow(lambda _start: None, SOON)] == []
    assert held.finished.status == 1


async def test_a_client_that_cannot_be_asked_for_fails_by_its_name(shell: WindowsShell) -> None:
    held = await _held(shell, ("fio", "%x%"))
    await held.start_at(time.monotonic())
    with pytest.raises(GuestError, match="win: fio: '%x%' cannot be a word"):
        async for _ in held.follow(lambda _start: None, SOON):
            pass


async def test_who_follows_hears_of_a_guest_that_has_gone(shell: WindowsShell, commands: Commands) -> None:
    commands.go.clear()
    held = await _held(shell)
    await held.start_at(time.monotonic())

    def cut(_start: TrueStart) -> None:
        asyncio.get_running_loop().call_soon(shell._connection.abort)

    following = held.follow(cut, SOON)
    with pytest.raises(GuestError, match="win: fio: connection lost"):
        async for _ in following:
            pass
    await held.close()


async def test_what_windows_cannot_run_is_refused(shell: WindowsShell) -> None:
    with pytest.raises(GuestError, match="win: Windows cannot run python3"):
        await shell.launch(["python3", "-c", "pass"])
    with pytest.raises(GuestError, match="neither environment nor input"):
        await HeldClient.hold(shell, shell, Client(("fio",), SOON, stdin="x"), SOON)


@pytest.mark.parametrize(
    ("version", "status", "lacks"),
    [
        (b"\r\nMicrosoft Windows [Version 10.0.20348.587]\r\n", 0, []),
        (b"\r\nMicrosoft Windows [Version 10.0.20348.587]\r\n", 1, ["fio for Windows on its PATH"]),
        (b"", 137, ["Windows, with which it was added: cmd.exe said nothing, and exited with 137"]),
        (b"sh: cmd.exe: not found\n", 127, ["Windows, with which it was added: cmd.exe said sh: cmd.exe: not found"]),
    ],
)
async def test_what_it_lacks_is_one_list(
    shell: WindowsShell, commands: Commands, version: bytes, status: int, lacks: list[str]
) -> None:
    commands.out, commands.status = version, status
    assert await missing_on_windows(shell, ["fio", "fio"]) == lacks
