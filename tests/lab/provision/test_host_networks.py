"""What a kernel lacks is tried out by a program when somebody asks, once, and by root alone."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.one_cell import HOST
from vmlab.lab.process.prepared import RunRequest, host_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision import host_support
from vmlab.lab.provision.host_support import Lacking
from vmlab.plan.terms import Overrides

REASON = {"vxlan": "no tunnels"}


@pytest.fixture(autouse=True)
def _whole_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU lacks nothing, and is not asked."""
    for name in ("lacking_io", "lacking_machine", "lacking_vhost"):
        monkeypatch.setattr(host_support, name, dict)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Each start of the program, which says that there are no tunnels."""
    starts: list[Any] = []

    def run(argv: Any, **_options: Any) -> subprocess.CompletedProcess[str]:
        starts.append(argv)
        return subprocess.CompletedProcess(argv, 0, json.dumps(REASON), "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return starts


def test_it_is_tried_once_and_only_when_somebody_asks(tried: list[Any]) -> None:
    lacking = Lacking()
    assert lacking == lacking
    assert lacking != Lacking()
    assert hash(lacking) == hash(lacking)
    assert (lacking.found, tried) == ({}, [])
    assert lacking["vxlan"] == "no tunnels"
    assert lacking.get("bandwidth") is None
    assert (dict(lacking), len(lacking), lacking.found) == (REASON, 1, REASON)
    assert len(tried) == 1


def test_a_user_who_may_not_try_is_told_nothing(tried: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert dict(Lacking()) == {}
    assert tried == []


@pytest.mark.parametrize("fault", [OSError("none"), subprocess.CalledProcessError(1, "probe"), ValueError("no JSON")])
def test_a_probe_that_says_nothing_leaves_it_to_the_run(
    tried: list[Any], monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(*_argv: Any, **_options: Any) -> None:
        raise fault

    monkeypatch.setattr(subprocess, "run", fail)
    assert dict(Lacking()) == {}


@pytest.mark.usefixtures("own_folders")
@pytest.mark.parametrize("asked", [False, True])
def test_a_run_keeps_what_its_plan_asked_for_and_no_more(tried: list[Any], asked: bool) -> None:
    folder = RunFolder.of("20261121-150000-two-0001")
    os.close(folder.make())
    lacking = Lacking()
    if asked:
        lacking.get("vxlan")
    write_request(folder, RunRequest(folder.id, "x.yaml", Overrides(), 1), "name: x", replace(HOST, lacking=lacking))
    assert host_of(folder).lacking == (REASON if asked else {})
    assert len(tried) == asked
