"""The contract tests on the libvirtd of a host that is thrown away, in which `make test-host` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libvirt
import pytest

from tests.hypervisor.hosts_libvirt.test_beside_libvirtd import require_what_both_do
from tests.hypervisor.programs.beside_libvirtd import decoys, run
from tests.hypervisor.programs.made import WITH_KVM
from tests.private_libvirtd import require_untouched


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """libvirtd's, with guests and networks of others beside those of the host."""
    os.environ[WITH_KVM] = "1"
    opened = libvirt.open("qemu:///system")
    were = [one.name() for one in (*opened.listAllDomains(), *opened.listAllNetworks())]
    decoys(opened)
    yield opened
    for made in (*opened.listAllDomains(), *opened.listAllNetworks()):
        if made.name() not in were:
            # A transient one is gone once it is destroyed, and cannot be asked.
            stays = made.isPersistent()
            made.destroy()
            if stays:
                made.undefine()
    opened.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path on a disk, which takes O_DIRECT."""
    place = Path("/var/tmp/contract")
    place.mkdir()
    yield place
    place.rename(f"{place}-{len(list(place.parent.glob('contract-*')))}")


def test_guests_are_switched_frozen_restored_and_gone(connection: Any, folder: Path) -> None:
    document = run(connection, folder, ["bare", "close"], None)
    assert document["status"] == 0, document
    first, second = document["said"]
    assert first["facts"]["hypervisor"] == "qemu:///system"
    require_what_both_do(first, second)
    assert document["removed"] == [], "it has cleared up itself"
    require_untouched(document)


@pytest.mark.parametrize("victim", ["runner", "init", "launcher"])
def test_whoever_is_killed_nothing_is_left(connection: Any, folder: Path, victim: str) -> None:
    document = run(connection, folder, ["bare", "hang"], victim)
    assert document["status"] != 0
    assert document["during"]["domains"] == ["test-db-1", "test-web-1"]
    assert document["domains_ended_by_themselves"]
    require_untouched(document)
