"""The program that runs a user's command, run for real: what it tells, what it ends, and what it leaves running."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until
from vmlab.workloads.payload import command_client

PROGRAM = Path("vmlab/workloads/payload/command_client.py").resolve()
CGROUPS = [
    Path(one) for one in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if Path(one, "cgroup.controllers").exists()
]
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not CGROUPS, reason="cgroups of version 2 need root")


class Client:
    """The program, with a cgroup and a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"test-{uuid.uuid4().hex[:12]}"
        self.group = CGROUPS[0] / f"vmlab-{self.name}"
        self.kept = folder / "kept" / "text"

    def argv(self, text: str, **changed: Any) -> list[str]:
        options = {
            "text": text,
            "folder": str(self.folder),
            "user": "root",
            "rounds": 1,
            "time": None,
            "timeout": 60.0,
            "most": 10_000,
            "group": self.name,
            "kept": str(self.kept),
            "stays": False,
            "units": False,
            **changed,
        }
        return [sys.executable, "-I", "-S", str(PROGRAM), json.dumps(options)]

    def run(self, text: str, **changed: Any) -> dict[str, Any]:
        argv = self.argv(text, **changed)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=240, start_new_session=True)
        assert (done.returncode, done.stderr) == (0, "")
        account: dict[str, Any] = json.loads(done.stdout)
        return account

    @property
    def printed(self) -> tuple[str, str]:
        out, err = (Path(f"{self.kept}.{end}").read_bytes().decode() for end in ("out", "err"))
        return out, err


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    made = Client(tmp_path)
    yield made
    assert not made.group.exists()


def is_empty(group: Path) -> bool:
    return "populated 0" in (group / "cgroup.events").read_text()


def test_what_a_command_prints_is_kept_for_each_round(client: Client) -> None:
    (client.folder / "greet.sh").write_text("#!/bin/sh\necho 'é' $((20 + $1))\nprintf 'oh\\r\\n' >&2\n")
    (client.folder / "greet.sh").chmod(0o755)
    account = client.run("./greet.sh 22", rounds=3)
    assert client.printed == ("é 42\n" * 3, "oh\r\n" * 3)
    seconds = account.pop("seconds")
    assert seconds > 0
    assert account == {
        "rounds": [[5, 4]] * 3,
        "status": 0,
        "over": False,
        "late": False,
        "left": [],
        "units": [],
        "last": ["oh"],
    }


def test_rounds_begin_until_the_time_is_over(client: Client) -> None:
    account = client.run("sleep 0.02", time=0.1)
    assert 2 <= len(account["rounds"]) <= 5
    assert account["seconds"] >= 0.1


@pytest.mark.parametrize(("text", "status"), [("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127)])
def test_no_round_follows_one_that_failed(client: Client, text: str, status: int) -> None:
    account = client.run(f"echo begun; {text}", rounds=5)
    assert (account["status"], len(account["rounds"])) == (status, 1)
    assert account["last"], "what it said last"


def test_the_last_lines_are_those_of_the_error_output(client: Client) -> None:
    account = client.run("seq 9; printf 'a\\n\\nb\\nc\\nd\\n' >&2; false")
    assert account["last"] == ["b", "c", "d"]


@pytest.mark.parametrize("text", ["yes", "yes >&2", "setsid yes & exit 0", "head -c 10001 /dev/zero"])
def test_who_prints_too_much_is_ended_and_no_more_is_kept(client: Client, text: str) -> None:
    account = client.run(text)
    assert account["over"] and not account["late"]
    assert sum(map(len, client.printed)) <= 10_000


def test_all_that_may_be_printed_is_no_fault(client: Client) -> None:
    account = client.run("head -c 10000 /dev/zero")
    assert (account["over"], account["rounds"]) == (False, [[10_000, 0]])


@pytest.mark.parametrize("text", ["echo begun; sleep 1000", "trap '' TERM HUP; echo begun; while :; do sleep 1; done"])
def test_who_never_ends_is_ended(client: Client, text: str) -> None:
    account = client.run(text, timeout=1.0)
    assert account["late"] and account["last"] == ["begun"]


@pytest.mark.parametrize(
    ("text", "status"), [("kill 0; sleep 9", 143), ("kill -9 0", 137), ("trap '' TERM; kill 0", 0)]
)
def test_a_signal_for_its_group_reaches_the_round_alone(client: Client, text: str, status: int) -> None:
    account = client.run(f"echo begun; {text}")
    assert (account["status"], client.printed[0]) == (status, "begun\n")


@pytest.mark.parametrize("stays", [False, True])
async def test_who_ends_its_client_ends_the_command(client: Client, stays: bool) -> None:
    """As `start_line` and the helper do at a deadline."""
    text = "setsid sleep 1000 & touch begun; sleep 1000"
    argv = client.argv(text, stays=stays)
    process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, start_new_session=True)
    await until((client.folder / "begun").exists, "the command began")
    os.killpg(process.pid, signal.SIGKILL)
    assert (await process.communicate())[0] == b""
    await until(lambda: not client.group.exists(), "the command was ended")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sleep 1000 & echo done", "sleep"),
        ("setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo done", "sleep"),
        ("(setsid sh -c 'sleep 1000 & exit 0' & exit 0); echo done", "sleep"),
    ],
)
def test_what_is_left_running_is_named_and_ended(client: Client, text: str, name: str) -> None:
    account = client.run(text)
    assert (account["status"], account["left"]) == (0, [name])
    assert client.printed[0] == "done\n"


def test_what_ends_a_moment_after_the_shell_is_waited_for(client: Client) -> None:
    account = client.run("(sleep 0.1; echo late) & exit 0")
    assert (account["left"], client.printed[0]) == ([], "late\n")


async def test_a_server_of_prepare_goes_on_and_may_print(client: Client) -> None:
    text = "(until [ -e go ]; do sleep 0.02; done; echo on; yes | head -c 300000; touch went) & echo ready"
    account = client.run(text, stays=True, kept="")
    assert (account["status"], account["left"], account["last"]) == (0, [], ["ready"])
    assert not is_empty(client.group)
    (client.folder / "go").touch()
    await until((client.folder / "went").exists, "the server went on")
    await until(lambda: is_empty(client.group), "the server ended")
    client.group.rmdir()


def test_it_runs_as_a_user(client: Client) -> None:
    client.folder.chmod(0o755)
    account = client.run('id -un; id -G; echo "$HOME $USER"', user="nobody", folder="/")
    assert account["status"] == 0
    assert client.printed[0] == "nobody\n65534\n/nonexistent nobody\n"


def test_a_text_reaches_the_shell_as_it_is(client: Client) -> None:
    client.run("printf '%s|' \"$0\" 'a  b' '$(touch no)' '\"' é \\\n c")
    assert client.printed[0] == 'sh|a  b|$(touch no)|"|é|c|'
    assert not (client.folder / "no").exists()


@pytest.mark.parametrize("text", ["sleep 0.4", "sleep 0.1; sleep 0.3 & exit 0"])
def test_seconds_are_to_the_end_of_all_that_the_shell_started(client: Client, text: str) -> None:
    before = time.monotonic()
    account = client.run(text)
    assert 0.4 <= account["seconds"] <= time.monotonic() - before


def test_work_in_the_background_of_each_round_is_timed(client: Client) -> None:
    account = client.run("for i in 1 2 3; do (sleep 0.2; echo done) & done", rounds=2)
    assert (account["left"], client.printed[0]) == ([], "done\n" * 6)
    assert account["seconds"] >= 0.4


class Systemd:
    """Units in folders as cgroups have them, and what systemctl says of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = {"": {"FinishTimestampMonotonic": "5000000"}}

    def run(self, unit: str, *, within: str = "system.slice", running: bool = True, **said: str) -> None:
        place = self.folder / within / unit
        place.mkdir(parents=True, exist_ok=True)
        (place / "cgroup.events").write_text(f"populated {int(running)}\nfrozen 0\n")
        self.said[unit] = {"Type": "notify", "TriggeredBy": "", **said}

    def shown(self, *_properties: str, unit: str = "") -> dict[str, str] | None:
        return self.said.get(unit)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path)
    monkeypatch.setattr(command_client, "HIERARCHIES", (str(tmp_path),))
    (tmp_path / "cgroup.controllers").touch()
    monkeypatch.setattr(command_client, "GRACE", 0.05)
    monkeypatch.setattr(command_client, "shown", made.shown)
    made.run("ssh.service")
    return made


def ended_round() -> command_client.Round:
    last = command_client.Round.__new__(command_client.Round)
    last.ended = 0.0
    return last


def test_services_that_a_command_left_running_are_named(systemd: Systemd) -> None:
    before = command_client.running_units()
    assert before == {"ssh.service"}
    assert command_client.left_units(ended_round(), before, 9.0) == []
    systemd.run("redis-server.service")
    systemd.run("postgresql@15-main.service", within="system.slice/system-postgresql.slice")
    systemd.run("batch.service", within="work.slice/work-low.slice")
    systemd.run("session-2.scope", within="user.slice/user-0.slice")
    systemd.run("run-r1.scope", Type="")
    systemd.run("done.service", running=False)
    systemd.run("systemd-hostnamed.service", Type="dbus")
    systemd.run("apt-daily.service", Type="oneshot", TriggeredBy="apt-daily.timer")
    systemd.said["apt-daily.timer"] = {"ActiveState": "active", "ActiveEnterTimestampMonotonic": "4500000"}
    systemd.run("docker.service", TriggeredBy="docker.socket")
    systemd.said["docker.socket"] = {"ActiveState": "active", "ActiveEnterTimestampMonotonic": "9500000"}
    left = ["batch.service", "docker.service", "postgresql@15-main.service", "redis-server.service", "run-r1.scope"]
    assert command_client.left_units(ended_round(), before, 9.0) == left
    assert command_client.left_units(ended_round(), before, 4.0) == [], "the guest was still booting"


def test_a_service_that_ends_a_moment_after_the_command_is_part_of_it(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, last = command_client.running_units(), ended_round()
    systemd.run("run-r1.service")
    monkeypatch.setattr("time.sleep", lambda _: systemd.run("run-r1.service", running=False))
    assert command_client.left_units(last, before, 9.0) == []
    assert last.ended > 0.0
