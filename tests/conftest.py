"""What holds for all tests."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from ruamel.yaml import YAML

from tests.priority import LAST_NICE, be_nice
from vmlab.model.places import shipped_scenarios

# nohup and a shell's background jobs leave these signals ignored, also for the programs that tests start and signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
# As many open files as a user has who logs in, also for what tests start: a leak is to be seen here first.
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


_SHARES_CPUS = os.geteuid() == 0 and "PYTEST_XDIST_WORKER" in os.environ
"""Whether this process is one of several that run tests, and may say which of them go first."""
_IS_WORKER_LINE = "import sys;exec(eval(sys.stdin.readline()))"
"""What Python is given by pytest-xdist."""


def pytest_configure() -> None:
    """A worker has a session of its own, of which `be_nice` says the share of the CPUs."""
    if _SHARES_CPUS:
        os.setsid()


@pytest.hookimpl(trylast=True)
def pytest_keyboard_interrupt() -> None:
    """Ctrl-C on a terminal reaches no other session: workers are told here, and end what their tests have begun."""
    for child in psutil.Process().children():
        if _IS_WORKER_LINE in child.cmdline() and os.getsid(child.pid) == child.pid:
            os.killpg(child.pid, signal.SIGINT)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order tests for several workers: real guests first, then exhaustive ones, as both take longest, and last what
    runs alone. What is nightly is exhaustive.

    Tests with real guests and those that run alone make up groups, each of which one worker runs: "runs" for runs of
    the program, of which the host allows one at a time, "guests" for the others, and "alone".
    """
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker("exhaustive")
        if item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.xdist_group("alone"))
        elif item.get_closest_marker("guests") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("guests"))
        _name_group(item)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[bool, bool, bool]:
    alone, guests, exhaustive = (item.get_closest_marker(one) is not None for one in ("alone", "guests", "exhaustive"))
    return alone, not guests, not exhaustive


def _name_group(item: pytest.Item) -> None:
    """Append the group to the test's name, by which workers are chosen, where pytest-xdist does not.

    Its version 3.8 sets `_nodeid`, which pytest has no more since 9.2.
    """
    group = item.get_closest_marker("xdist_group")
    known = getattr(item, "_id", None)
    if group and known is not None and "PYTEST_XDIST_WORKER" in os.environ:
        item._id = known.parse(f"{known}@{group.args[0]}")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """No garbage is looked for in what is there before the first test: that took a sixth of the tests' CPU time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test marked `alone` while no other worker runs any. The lock is on this file, so nothing is left behind.

    Beside others, tests without guests leave the CPUs to those with guests: these take longest, and have deadlines.
    """
    alone = item.get_closest_marker("alone") is not None
    if _SHARES_CPUS:
        be_nice(0 if alone or item.get_closest_marker("guests") is not None else LAST_NICE)
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            return (yield)
        finally:
            # Explicitly, as a process that the test has forked may have the descriptor too.
            fcntl.flock(lock, fcntl.LOCK_UN)


@pytest.fixture(scope="session")
def image() -> str:
    """The guest image, built when it is missing; its id."""
    if os.geteuid() != 0:
        pytest.skip("real guests need root")
    built = subprocess.run(
        [sys.executable, "-m", "vmlab", "image", "build"], capture_output=True, text=True, timeout=1200
    )
    assert built.returncode == 0, built.stderr
    return built.stdout.strip()


@pytest.fixture(autouse=True, scope="session")
def _shipped_scenarios_parsed_once() -> Iterator[None]:
    """Each process parses the text of a shipped scenario once, which takes up to a second."""
    texts = {path.read_text(encoding="utf-8") for path in shipped_scenarios().glob("*.yaml")}
    parse, kept = YAML.parse, dict[str, list[Any]]()

    def events(yaml: YAML, stream: Any) -> Iterator[Any]:
        if not isinstance(stream, str) or stream not in texts:
            return iter(parse(yaml, stream))
        if stream not in kept:
            kept[stream] = list(parse(yaml, stream))
        return iter(kept[stream])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(YAML, "parse", events)
        yield


@pytest.fixture(autouse=True, scope="session")
def _utc() -> None:
    """Times of day are the same wherever tests run."""
    os.environ["TZ"] = "UTC"
    time.tzset()


@pytest.fixture(autouse=True)
def _a_host_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's runs and those of this host do not see each other, but where the real program is run."""
    monkeypatch.setattr("vmlab.lab.process.measuring_runs.RUN_FOLDERS", (tmp_path,))


@pytest.fixture(autouse=True)
def _a_state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds a user's runs, or leaves its own among them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def _no_precedence_for_the_tests_themselves() -> Iterator[None]:
    """A test that leaves its thread at real-time priority would hide from all later ones what is slow."""
    before = os.sched_getscheduler(0)
    yield
    if os.sched_getscheduler(0) != before:
        os.sched_setscheduler(0, before, os.sched_getparam(0) if before == os.SCHED_RR else os.sched_param(0))
        pytest.fail("the test left its thread at another priority")
