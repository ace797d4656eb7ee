"""A shell through the guest agent, with programs that really run."""

import math
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.agent import LocalAgent
from tests.waiting import until
from vmlab.guests.agent import AgentShell, run_program, wait_for_agent
from vmlab.model.errors import DeadlineExceeded, GuestError, HypervisorError

LARGE = bytes(range(256)) * 400


@pytest.fixture
async def agent() -> AsyncIterator[LocalAgent]:
    agent = LocalAgent()
    yield agent
    await agent.close()


@pytest.fixture
def shell(agent: LocalAgent) -> AgentShell:
    return AgentShell("web", agent)


async def test_a_program_gets_its_words_and_input_and_gives_status_and_outputs(shell: AgentShell) -> None:
    program = 'cat; printf %s "$1"; echo wrong >&2; exit 3'
    ended = await shell.run(["sh", "-c", program, "sh", "a $b 'c'"], stdin="given ", check=False)
    assert (ended.status, ended.stdout, ended.stderr) == (3, "given a $b 'c'", "wrong\n")
    with pytest.raises(GuestError, match=r"web: sh -c .* exited with 3: wrong"):
        await shell.run(["sh", "-c", program])


async def test_programs_find_a_logins_environment(shell: AgentShell) -> None:
    said = dict(line.split("=", 1) for line in (await shell.run(["env"])).stdout.splitlines())
    assert said["HOME"] == "/root" and said["LANG"] == "C.UTF-8" and "/usr/sbin" in said["PATH"]


async def test_what_a_shell_would_tell_is_told(shell: AgentShell) -> None:
    assert (await shell.run(["/nowhere/program"], check=False)).status == 127
    assert (await shell.run(["sh", "-c", "kill -TERM $$"], check=False)).status == 128 + 15


@pytest.mark.parametrize("size", [0, 1, 32 * 2**10, 32 * 2**10 + 1, len(LARGE)])
async def test_files_arrive_whole_in_pieces_that_the_agent_bears(
    shell: AgentShell, agent: LocalAgent, tmp_path: Path, size: int
) -> None:
    target = tmp_path / "new folder" / "it's here"
    await shell.write(str(target), LARGE[:size], mode=0o640)
    assert target.read_bytes() == LARGE[:size]
    assert target.stat().st_mode & 0o777 == 0o640
    await shell.write(str(target), b"shorter")
    assert target.read_bytes() == b"shorter", "an old file is replaced"
    assert agent.largest <= 32 * 2**10


async def test_long_input_goes_through_a_file(
    shell: AgentShell, agent: LocalAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmlab.guests.agent._LONG_INPUT", str(tmp_path / "input"))
    assert (await shell.run(["wc", "-c"], stdin="x" * 100_000)).stdout.strip() == "100000"
    assert agent.largest <= 32 * 2**10 and list(tmp_path.iterdir()) == []


async def test_a_file_that_cannot_be_written_is_named(shell: AgentShell) -> None:
    with pytest.raises(GuestError, match="web: cannot write /proc/version/x"):
        await shell.write("/proc/version/x", b"")


async def test_a_program_that_takes_too_long_is_killed(agent: LocalAgent, tmp_path: Path) -> None:
    told = tmp_path / "pid"

    async def once_begun(command: str, arguments: Any, *, deadline: float) -> Any:
        answer = await agent(command, arguments, deadline=deadline)
        await until(lambda: told.exists() and told.read_text(), "that it has begun")
        return answer

    with pytest.raises(DeadlineExceeded, match="web: sh took longer than 1 s"):
        await AgentShell("web", once_begun).run(["sh", "-c", f"echo $$ > {told}; exec sleep 3600"], deadline=1)
    process = Path("/proc", told.read_text().strip())
    await until(lambda: not process.exists(), "that it is gone")


async def test_a_lost_agent_is_a_guests_error() -> None:
    async def lost(command: str, _arguments: Any, *, deadline: float) -> Any:
        if command == "guest-exec":
            return {"pid": 1}
        raise HypervisorError("Guest agent is not responding")

    with pytest.raises(GuestError, match="the guest agent was lost"):
        await run_program(lost, ["true"], b"", 5)


async def test_output_that_the_agent_cut_is_no_output() -> None:
    async def cutting(command: str, _arguments: Any, *, deadline: float) -> Any:
        return {"pid": 1} if command == "guest-exec" else {"exited": True, "exitcode": 0, "out-truncated": True}

    with pytest.raises(GuestError, match="printed more"):
        await run_program(cutting, ["yes"], b"", 5)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"exited": True, "exitcode": "zero"},
        {"exited": True, "exitcode": 0, "out-data": "a"},
        {"exited": True, "exitcode": 0, "out-data": 7},
        {"exited": True, "signal": {}},
    ],
    ids=repr,
)
async def test_what_a_hostile_agent_says_is_a_guests_error(answer: Any) -> None:
    async def hostile(command: str, _arguments: Any, *, deadline: float) -> Any:
        return {"pid": 1} if command == "guest-exec" else answer

    with pytest.raises(GuestError, match="the guest agent said what cannot be read"):
        await run_program(hostile, ["true"], b"", 5)


async def test_the_agent_is_asked_until_it_answers() -> None:
    left = [HypervisorError("not connected"), DeadlineExceeded("late")]

    async def waking(_command: str, _arguments: Any, *, deadline: float) -> Any:
        if left:
            raise left.pop()
        return {}

    await wait_for_agent(waking, "web", 10)

    async def silent(_command: str, _arguments: Any, *, deadline: float) -> Any:
        raise HypervisorError("not connected")

    with pytest.raises(DeadlineExceeded, match="web: no guest agent within 0 s: not connected"):
        await wait_for_agent(silent, "web", 0.3)


async def test_few_questions_are_asked_of_a_program_that_runs_long(shell: AgentShell, agent: LocalAgent) -> None:
    began = time.monotonic()
    await shell.run(["sleep", "1"])
    took = time.monotonic() - began
    # Every 20 ms for a tenth of a second, and then after each fifth of the time so far.
    assert 1 <= agent.asked.count("guest-exec-status") <= 8 + math.log(took / 0.1, 1.2)
