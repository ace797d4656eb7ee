"""What doctor looks at: every failing check that a lab needs names what mends it."""

import shutil

import pytest

from tests.fakes.hypervisor import FakeHypervisor
from vmlab.hypervisor.checks import checks
from vmlab.hypervisor.contract import Hypervisor
from vmlab.hypervisor.embedded import EmbeddedHypervisor


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program, path: None)
    found = {check.name: check for check in checks()}
    assert not found["qemu-img"].ok
    assert found["qemu-img"].remedy == "apt-get install qemu-utils"


def test_everything_required_has_a_remedy() -> None:
    found = checks()
    assert all(check.remedy for check in found if check.required)
    assert len({check.name for check in found}) == len(found)
    assert {"KVM", "KSM", "cgroups"} == {check.name for check in found if not check.required}


def both_fulfil_the_contract(real: EmbeddedHypervisor, fake: FakeHypervisor) -> list[Hypervisor]:
    """For the type checker alone."""
    return [real, fake]
