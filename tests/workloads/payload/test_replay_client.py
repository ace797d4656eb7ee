"""The replay's client against a stand-in for MariaDB's library, and the clock of this machine."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

PAYLOAD = Path(str(resources.files("vmlab.workloads").joinpath("payload")))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in."""
    folder = tmp_path_factory.mktemp("library")
    source = Path(__file__).parents[1] / "mariadb_stub.c"
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", folder / "libmariadb.so.3", source], check=True)
    return folder


class Replay:
    """The client with a log and a number of threads."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.folder = library, folder

    def run(self, log: list[list[str]], threads: int = 3, user: str = "replay") -> subprocess.CompletedProcess[str]:
        (self.folder / "queries").write_text(json.dumps(log))
        (self.folder / "threads").write_text(f"{threads}\n")
        order = {"address": "a", "port": 1, "socket": "", "user": user, "database": "d"}
        order |= {name: str(self.folder / name) for name in ("queries", "threads")}
        argv = [sys.executable, "-I", "-S", str(PAYLOAD / "replay_client.py"), json.dumps(order)]
        environment = {"LD_LIBRARY_PATH": str(self.library)}
        return subprocess.run(argv, env=environment, text=True, capture_output=True, timeout=240)

    def account(self, log: list[list[str]], threads: int = 3) -> dict[str, Any]:
        done = self.run(log, threads)
        assert done.returncode == 0, done.stderr
        account: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return account


@pytest.fixture
def replay(library: Path, tmp_path: Path) -> Replay:
    return Replay(library, tmp_path)


def test_every_query_is_asked_once_in_each_pass(replay: Replay) -> None:
    log = [[f"SELECT {connection}, {number}" for number in range(5)] for connection in range(40)]
    account = replay.account(log)
    warm, measured = account["warm"], account["measured"]
    assert account["threads"] == 3
    assert [one["queries"] for one in (warm, measured)] == [200, 200]
    assert [one["rows"] for one in (warm, measured)] == [200, 200]
    # The answers of 200 queries; and of each thread's own question, without its number.
    sent = sum(100 + len(query) for queries in log for query in queries) + 3 * 100
    assert [one["bytes_sent"] for one in (warm, measured)] == [sent, sent]
    assert warm["counts"] == measured["counts"] != ""
    assert warm["disagreed"] == 0
    assert 0 <= measured["latency_p50"] <= measured["latency_p95"] <= measured["latency_max"] < 240


def test_how_the_log_is_shared_out_changes_nothing_of_the_account(replay: Replay) -> None:
    log = [[f"SELECT {connection}"] * 3 for connection in range(20)]
    one, many = replay.account(log, 1)["measured"], replay.account(log, 6)["measured"]
    assert one["counts"] == many["counts"]


def test_threads_that_find_nothing_more_to_do_end_while_another_still_asks(replay: Replay) -> None:
    account = replay.account([["SELECT slow"], ["SELECT 1"]], 3)
    assert [account[name]["queries"] for name in ("warm", "measured")] == [2, 2]


def test_the_death_of_all_processes_is_noticed(replay: Replay) -> None:
    done = replay.run([["SELECT 1"], ["SELECT death"], ["SELECT 2"]], threads=1)
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (1, "a process of the replay ended early")


def test_an_answer_that_differs_between_threads_is_counted(replay: Replay) -> None:
    assert replay.account([["SELECT moody"]] * 300, 4)["warm"]["disagreed"] >= 1


@pytest.mark.parametrize(
    ("log", "user", "reason"),
    [
        ([["SELECT 1"], ["SELECT broken"]], "replay", "Table 'broken' doesn't exist: SELECT broken"),
        ([["SELECT 1"], ["SELECT death"]], "replay", "a process of the replay ended early"),
        ([["SELECT 1"]], "nobody", "Access denied"),
    ],
)
def test_what_mariadb_refuses_ends_the_replay(replay: Replay, log: list[list[str]], user: str, reason: str) -> None:
    done = replay.run(log, user=user)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == reason


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the chain of additions is of x86-64")
def test_the_clock_of_each_processor_is_one_that_processors_have() -> None:
    argv = [sys.executable, "-I", "-S", str(PAYLOAD / "clock_rate.py")]
    hertz = json.loads(subprocess.run(argv, text=True, capture_output=True, check=True).stdout)["hertz"]
    assert hertz
    assert all(3e8 < one < 1e10 for one in hertz)
