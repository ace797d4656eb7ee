"""Programs on the host that take nothing, or do not end: they are not waited for either."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from vmlab.guests import host_shell
from vmlab.guests.host_shell import HostChannel, HostShell
from vmlab.model.errors import DeadlineExceeded, GuestError

SOON = 60.0


@pytest.fixture(autouse=True)
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEND_SECONDS", "CLOSE_SECONDS"):
        monkeypatch.setattr(host_shell, name, 0.3)


async def started(*argv: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)


async def test_a_line_that_a_program_does_not_take_is_given_up_and_the_program_is_killed() -> None:
    process = await started("sleep", "3600")
    channel = HostChannel(process)
    async with asyncio.timeout(SOON):
        with pytest.raises(DeadlineExceeded, match="host: a line was not taken"):
            for _ in range(100):
                await channel.send("x" * 2**20)
        await channel.close()
    assert process.returncode == -9


async def test_a_process_that_outlives_sigkill_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in an uninterruptible wait for a disk does; here its end is only not told."""
    monkeypatch.setattr(host_shell, "_KILL_SECONDS", 0.3)
    process = await started("sleep", "3600")
    told = process.wait
    monkeypatch.setattr(process, "wait", lambda: asyncio.sleep(3600))
    async with asyncio.timeout(SOON):
        with pytest.raises(DeadlineExceeded, match=r"outlived SIGKILL by 0\.3 s"):
            await HostChannel(process).close()
    assert await told() == -9


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
async def test_a_program_joins_its_groups_before_it_begins(tmp_path: Path) -> None:
    groups = [tmp_path / "cpu set.procs", tmp_path / "memory.procs"]
    shell = HostShell(Path("/"), "10.0.0.1", groups=groups).within(Path("/"))
    said = await shell.run(["cat", *map(str, groups), "/nonexistent"], check=False)
    # 0 is the writer itself, which then becomes the program.
    assert said.stdout == "0\n0\n"
    assert "No such file" in said.stderr
    channel = await HostShell(Path("/"), "10.0.0.1", groups=[tmp_path / "none" / "procs"]).launch(["echo", "began"])
    assert await channel.receive() == "", "what cannot join does not run"
    await channel.close()


async def test_output_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.guests.channel.MOST_PRINTED", 100_000)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("yes", stdin=pipe, stdout=pipe, stderr=pipe)
    with pytest.raises(GuestError, match=r"host: yes printed more than 97\.7 KiB"):
        await host_shell._communicated(process, b"", "yes")
    # It is seen to end, although its output was not read to the end.
    await host_shell._kill(process)
    assert process.returncode == -signal.SIGKILL


async def test_input_and_output_that_need_each_other_go_on_together() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=pipe, stderr=pipe)
    text = b"0123456789" * 500_000
    assert await host_shell._communicated(process, text, "cat") == (text, b"")
