"""Signals reach the process that is meant, and no other that has its number."""

import ast
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vmlab.system.processes import command_line, oom_kills, signal_child, signal_process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A child that sleeps."""
    child = subprocess.Popen(["sleep", "3600"])
    # The kernel tells of the exec a moment before the new words can be read.
    while command_line(child.pid) != b"sleep\x003600\x00":
        time.sleep(0.001)
    yield child
    child.kill()
    child.wait()


def test_the_process_that_is_meant_gets_it(sleeper: subprocess.Popen[bytes]) -> None:
    assert signal_process(sleeper.pid, signal.SIGTERM, lambda words: words == b"sleep\x003600\x00")
    assert sleeper.wait(timeout=60) == -signal.SIGTERM


def test_a_number_that_is_anothers_by_now_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    assert not signal_process(sleeper.pid, signal.SIGKILL, lambda words: b"vmlab" in words)
    assert sleeper.poll() is None


def test_one_that_is_gone_gets_nothing() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert command_line(child.pid) == b""
    assert not signal_process(child.pid, signal.SIGKILL, lambda _words: True)


def test_a_child_that_is_not_waited_for_gets_it(sleeper: subprocess.Popen[bytes]) -> None:
    signal_child(sleeper.pid, signal.SIGTERM)
    assert sleeper.wait(timeout=60) == -signal.SIGTERM
    assert os.getpid() != sleeper.pid


@pytest.mark.parametrize(
    ("vmstat", "count"),
    [("pgfault 7\noom_kill 3\n", 3), ("pgfault 7\n", 0), ("oom_kill\n", 0), ("oom_kill x\n", 0), (None, 0)],
)
def test_processes_that_the_kernel_killed_for_lack_of_memory(tmp_path: Path, vmstat: str | None, count: int) -> None:
    if vmstat is not None:
        (tmp_path / "vmstat").write_text(vmstat)
    assert oom_kills(tmp_path) == count


ASKS = {"cmdline", "name", "status", "ppid", "kill"}
LISTS = {"children", "process_iter"}


def asked_of_a_list(source: str) -> list[int]:
    """Lines of comprehensions that call a method of each process of a list: one that has ended since raises."""
    return [
        one.lineno
        for one in ast.walk(ast.parse(source))
        if isinstance(one, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
        and any(called(part.iter) & LISTS for part in one.generators)
        and called(one) & ASKS
    ]


def called(node: ast.AST) -> set[str]:
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return {one.attr for one in calls if isinstance(one, ast.Attribute)}


def test_no_comprehension_asks_processes_that_may_have_ended() -> None:
    root = Path(__file__).parents[2]
    files = [file for top in ("vmlab", "tests", "bench", "screenshots") for file in (root / top).rglob("*.py")]
    assert [f"{file}:{line}" for file in files for line in asked_of_a_list(file.read_text())] == []
    assert asked_of_a_list("[p.pid for p in psutil.process_iter() if p.name() == 'x']") == [1]
