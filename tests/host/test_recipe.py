"""The host's recipe, which says when its disk has to be built again."""

from pathlib import Path

import pytest

from tests.host import recipe
from tests.host.checks import CHECKS
from vmlab.hypervisor.checks import PROGRAMS


def test_what_doctor_asks_for_is_in_and_what_only_the_checkout_needs_is_not() -> None:
    packages = recipe.packages()
    assert {"libvirt-daemon", *PROGRAMS.values()} <= set(packages)
    assert not {"libvirt-dev", "sysstat"} & set(packages)
    assert len(packages) == len(set(packages))
    assert "pydantic>=2.8" in recipe.dependencies()


def test_the_address_follows_from_the_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = recipe.address("bookworm")
    assert recipe.address("bookworm") == before != recipe.address("trixie")
    monkeypatch.setattr(recipe, "PAYLOAD", tmp_path)
    assert recipe.address("bookworm") != before


def test_what_may_destroy_the_host_comes_last() -> None:
    assert [check.destructive for check in CHECKS] == sorted(check.destructive for check in CHECKS)
