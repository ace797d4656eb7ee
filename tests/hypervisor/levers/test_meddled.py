"""Levers that libvirt was told otherwise behind the lab's back: each proof finds it, on real QEMUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start
from tests.hypervisor.programs.meddled import CASES

# As runs that reserve huge pages, of which the host has one number.
pytestmark = [
    pytest.mark.guests,
    pytest.mark.xdist_group("runs"),
    pytest.mark.usefixtures("image"),
    pytest.mark.timeout(900),
]


def test_a_proof_agrees_with_what_qemu_has_and_with_nothing_else(
    isolated: Start, runtime: Path, tmp_path: Path
) -> None:
    lab = isolated("meddled", str(runtime), str(tmp_path))
    answer, complaints = lab.communicate(timeout=800)
    assert lab.returncode == 0, complaints
    said = json.loads(answer)
    assert said.keys() == CASES.keys()
    for lever, (as_asked, meddled) in said.items():
        if lever.endswith("iothread"):
            # Guests that stand have no work for it.
            assert (as_asked, meddled) == (
                {f"{lever}: iothread1, which has not worked": False},
                {f"{lever}: none": False},
            )
            continue
        assert as_asked and all(as_asked.values()), (lever, as_asked)
        assert meddled and not all(meddled.values()), (lever, meddled)
