"""The launcher, its init and its runner: what they hand over, and that none of them leaves anything."""

import json
import os
import signal
import subprocess
import time
from typing import Any

import psutil
import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.isolation import namespace
from vmlab.model.errors import HypervisorUnavailable
from vmlab.system import kernel


def sleepers(seconds: str) -> list[int]:
    """Pids of the processes that the test's runner has started, by the odd time that they sleep."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", seconds]:
            found.append(process.pid)
    return found


def wait_until_gone(seconds: str, pids: list[int]) -> list[int]:
    """What is left of them after at most a minute."""
    until = time.monotonic() + 60
    while (left := sleepers(seconds) + [pid for pid in pids if psutil.pid_exists(pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def wait_for_both(seconds: str) -> None:
    """Return when both children sleep: the kernel tells of an exec a moment before the new words can be read."""
    until = time.monotonic() + 60
    while len(sleepers(seconds)) != 2:
        assert time.monotonic() < until
        time.sleep(0.02)


def first_line(launcher: subprocess.Popen[str]) -> dict[str, Any]:
    assert launcher.stdout is not None
    line = launcher.stdout.readline()
    assert line, launcher.communicate()[1]
    return dict(json.loads(line))


@pytest.fixture
def seconds() -> str:
    """How long the children of this test sleep: a time that nothing else on the machine sleeps."""
    return f"1{time.monotonic_ns() % 10**6}.{os.getpid()}"


def test_the_status_of_the_runner_comes_back_and_its_children_are_gone(isolated: Start, seconds: str) -> None:
    launcher = isolated("family", "7", seconds)
    launcher.communicate(timeout=240)
    assert launcher.returncode == 7
    assert wait_until_gone(seconds, []) == []


def test_the_runner_knows_the_pids_that_the_host_sees(isolated: Start, seconds: str) -> None:
    launcher = isolated("family", "wait", seconds)
    try:
        said = first_line(launcher)
        assert said["launcher"] == launcher.pid
        assert psutil.Process(said["init"]).ppid() == launcher.pid
        assert psutil.Process(said["runner"]).ppid() == said["init"]
        assert "family" in " ".join(psutil.Process(said["runner"]).cmdline())
        assert said["own"] == 2, "a PID namespace of its own, with the init before it"
    finally:
        launcher.kill()
        launcher.communicate()


def test_orphans_are_reaped_and_the_network_is_empty(isolated: Start, seconds: str) -> None:
    launcher = isolated("family", "0", seconds)
    said = first_line(launcher)
    launcher.communicate(timeout=240)
    assert said["zombies"] == 0
    assert said["links"] == ["lo"]


@pytest.mark.parametrize("victim", ["launcher", "init", "runner"])
def test_killing_any_of_the_three_leaves_no_process(isolated: Start, seconds: str, victim: str) -> None:
    launcher = isolated("family", "wait", seconds)
    said = first_line(launcher)
    wait_for_both(seconds)
    os.kill(said[victim], signal.SIGKILL)
    launcher.communicate(timeout=240)
    assert launcher.returncode == (-signal.SIGKILL if victim == "launcher" else 128 + signal.SIGKILL)
    assert wait_until_gone(seconds, [said["init"], said["runner"]]) == []


def test_a_launcher_that_ignores_signals_hands_them_to_a_runner_that_does_not(isolated: Start, seconds: str) -> None:
    launcher = isolated("family", "wait", seconds)
    first_line(launcher)
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=240)
    assert launcher.returncode == 77
    assert wait_until_gone(seconds, []) == []


def test_a_dropped_terminal_ends_nothing(isolated: Start, seconds: str) -> None:
    launcher = isolated("family", "wait", seconds)
    first_line(launcher)
    wait_for_both(seconds)
    launcher.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert launcher.poll() is None
    assert len(sleepers(seconds)) == 2
    launcher.kill()
    launcher.communicate()
    assert wait_until_gone(seconds, []) == []


def test_a_program_that_is_not_there_is_said(isolated: Start) -> None:
    launcher = isolated("no_such_program")
    _, said = launcher.communicate(timeout=240)
    assert launcher.returncode == 1
    assert "no_such_program" in said


def test_a_host_that_forbids_namespaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_flags: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel, "unshare", forbidden)
    with pytest.raises(HypervisorUnavailable, match=r"run it as root"):
        namespace.run_isolated(["true"], env={})


def test_outside_of_a_lab_there_is_no_isolation() -> None:
    own = str(namespace.network_namespace())
    mounts = namespace.mount_namespace()
    apart = {namespace.HOST_NETNS: str(int(own) + 1), namespace.HOST_MNTNS: str(mounts + 1)}
    same = ({namespace.HOST_NETNS: own}, {namespace.HOST_NETNS: "nonsense"}, {namespace.HOST_MNTNS: str(mounts)})
    for env in ({}, *({**apart, **one} for one in same)):
        with pytest.raises(HypervisorUnavailable):
            namespace.require_isolation(env)
    namespace.require_isolation(apart)
    assert namespace.host_pids({}) is None
