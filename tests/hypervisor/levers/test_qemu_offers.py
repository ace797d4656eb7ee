"""What this host's QEMU and kernel cannot do for guests' disks: asked of a real QEMU, and of some that are made up."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from vmlab.hypervisor.levers import qemu_offers
from vmlab.hypervisor.levers.qemu_offers import lacking_io


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
def test_debians_qemu_has_every_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu_offers, "io_uring_fault", lambda: None)
    assert lacking_io() == {}


@pytest.mark.parametrize(
    ("said", "lacking"),
    [
        ({"return": [{"name": "7", "meta-type": "enum", "values": ["threads", "native"]}]}, ["io_uring"]),
        ({"return": [{"name": "7", "meta-type": "enum", "values": ["threads", "native", "io_uring"]}]}, []),
        ({"return": [{"name": "7", "meta-type": "object"}]}, []),
        ({"return": {}}, []),
    ],
)
def test_what_its_schema_leaves_out_is_lacking(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], lacking: list[str]
) -> None:
    text = f'{{"QMP": {{}}}}\n{{"return": {{}}}}\n{json.dumps(said)}\n'
    monkeypatch.setattr(qemu_offers, "io_uring_fault", lambda: None)
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, 0, text, ""))
    assert list(lacking_io()) == lacking


def test_a_kernel_without_io_uring_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"return": [{"values": ["threads", "native", "io_uring"]}]}
    text = f'{{"return": {{}}}}\n{json.dumps(said)}'
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, 0, text, ""))
    monkeypatch.setattr(qemu_offers, "io_uring_fault", lambda: "Function not implemented")
    assert lacking_io() == {"io_uring": "this host's kernel does no io_uring: Function not implemented"}
