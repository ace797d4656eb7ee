"""`vmlab doctor --fix`: shown, asked, run in order, and checked again."""

import os
import subprocess
import sys
from collections.abc import Sequence
from subprocess import CompletedProcess

import pytest

from tests.cli.called import ended
from vmlab.cli.commands import doctor_command
from vmlab.hypervisor.checks import Check, repairs
from vmlab.system import packages

Captured = pytest.CaptureFixture[str]
OK = Check("root", True, "running as root")
QEMU = Check(
    "qemu-img", False, "not installed", "apt-get install --no-install-recommends qemu-utils", packages=("qemu-utils",)
)
TUN = Check("/dev/net/tun", False, "missing", "modprobe tun", command=("modprobe", "tun"))
BINDING = Check("libvirt-python", False, "not installed", "…", True, ("gcc",), extra="lab")
SPACE = Check("space for runs", False, "1 GiB free", "a larger disk")


@pytest.fixture(autouse=True)
def debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "family", lambda: "debian")
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that were run; each ends with 0."""
    found: list[Sequence[str]] = []

    def run(command: Sequence[str], check: bool) -> CompletedProcess[str]:
        found.append(command)
        return CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return found


def looked_at(monkeypatch: pytest.MonkeyPatch, *times: Sequence[Check]) -> None:
    """What the checks find, each time that they are made."""
    left = list(times)
    monkeypatch.setattr(doctor_command, "checks", lambda: left.pop(0))


def test_packages_come_first_and_together_and_pythons_last() -> None:
    assert repairs([OK, BINDING, QEMU, SPACE, TUN]) == [
        ("apt-get", "update"),
        ("apt-get", "install", "--no-install-recommends", "--yes", "gcc", "qemu-utils"),
        ("modprobe", "tun"),
        packages.extra_command("lab"),
    ]


def test_without_root_the_host_is_changed_through_sudo_and_ones_own_python_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [command[0] for command in repairs([BINDING, QEMU, TUN])] == ["sudo", "sudo", "sudo", sys.executable]


def test_what_is_missing_is_installed_and_looked_at_again(
    ran: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    looked_at(monkeypatch, [OK, QEMU, TUN], [OK])
    assert ended("doctor", "--fix", "--yes") == 0
    assert ran == [
        ("apt-get", "update"),
        ("apt-get", "install", "--no-install-recommends", "--yes", "qemu-utils"),
        ("modprobe", "tun"),
    ]
    assert "to run: apt-get install --no-install-recommends --yes qemu-utils" in capsys.readouterr().err


def test_what_is_still_missing_decides_the_exit_code(
    ran: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    looked_at(monkeypatch, [QEMU, SPACE], [SPACE])
    assert ended("doctor", "--fix", "--yes") == 3
    assert capsys.readouterr().out.splitlines()[-2] == "NOT space for runs: 1 GiB free"


def test_nothing_is_run_without_a_yes(
    ran: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    looked_at(monkeypatch, [QEMU])
    assert ended("doctor", "--fix") == 2
    assert "without a terminal to ask on, say --yes" in capsys.readouterr().err
    assert ran == []


def test_a_command_that_fails_ends_it(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    looked_at(monkeypatch, [TUN])
    monkeypatch.setattr(doctor_command, "repairs", lambda _: [("false",), ("touch", "/never")])
    assert ended("doctor", "--fix", "--yes") == 3
    assert "`false` ended with code 1" in capsys.readouterr().err


def test_where_no_command_helps_it_says_so(
    ran: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    looked_at(monkeypatch, [OK, SPACE])
    assert ended("doctor", "--fix", "--yes") == 3
    assert "no missing part can be installed by a command" in capsys.readouterr().err
    assert ran == []


@pytest.mark.parametrize("options", [("--json", "--fix"), ("--yes",)])
def test_options_that_contradict_each_other_are_refused(options: tuple[str, ...], capsys: Captured) -> None:
    assert ended("doctor", *options) == 2


def test_a_detail_with_a_line_break_is_no_further_check(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """Details have names of others in them: of guests, mounts and packages."""
    looked_at(monkeypatch, [Check("other guests", True, "1 guest (web\nok  root: forged\u2028)"), SPACE])
    ended("doctor")
    assert capsys.readouterr().out.split("\n")[0] == "ok  other guests: 1 guest (web\\nok  root: forged\\u2028)"
