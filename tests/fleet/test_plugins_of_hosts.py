"""A scenario that uses another package's workload, over hosts of which one does not have that package."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.fleet.faked_controller import FLEET
from tests.fleet.local_hosts import LocalFleet
from tests.plugin.conftest import Packages
from tests.plugin.test_broken_plugins import WORKLOAD
from vmlab.system.entry_points import WORKLOADS, others_of

HOSTS = '[hosts.hv1]\naddress = "hv1"\n[hosts.hv2]\naddress = "hv2"\n'
SCENARIO = "name: mine\nguests: {a: {memory: 128 MiB}}\nworkloads: {one: {kind: odd, on: a}}\n"


@pytest.fixture
def packages() -> Iterator[Packages]:
    """A package with a workload, in the folder of a fleet, which is short, as sockets lie below it."""
    with TemporaryDirectory(prefix="vf-", dir="/var/tmp") as folder:
        place = Path(folder)
        fleet = LocalFleet.at(place)
        found = Packages(place / "packages", place / "controller")
        found.folder.mkdir()
        found.add("vmlab-odd", {"vmlab.workloads": {"odd": "odd_kind:Odd"}}, odd_kind=WORKLOAD)
        (place / "mine.yaml").write_text(SCENARIO)
        (place / "controller/vmlab").mkdir()
        (place / "controller/vmlab/hosts.toml").write_text(HOSTS)
        yield found
        for host in fleet.hosts.values():
            host.end()


def started(packages: Packages, *hosts: str) -> subprocess.CompletedProcess[str]:
    """Run the scenario on two hosts, of which these have the package."""
    place = packages.folder.parent
    said = {
        FLEET: json.dumps({"place": str(place), "packages": dict.fromkeys(hosts, str(packages.folder))}),
        "XDG_CONFIG_HOME": str(place / "controller"),
        "XDG_CACHE_HOME": str(place / "controller/cache"),
        "VMLAB_RUNTIME_DIR": str(place / "controller/run"),
    }
    command = ("run", str(place / "mine.yaml"), "--hosts", "hv1,hv2")
    return packages.python("-m", "tests.fleet.faked_command", *command, **said)


def test_a_host_without_the_plugin_is_named_and_nothing_starts(packages: Packages) -> None:
    done = started(packages, "hv1")
    lacks = "host hv2: lacks workload odd of vmlab-odd 1.0, which the scenario uses"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"vmlab: {lacks} (install it there)\n")
    assert list(packages.folder.parent.glob("**/runs/*")) == []


def test_hosts_that_have_the_plugin_run_it(packages: Packages) -> None:
    done = started(packages, "hv1", "hv2")
    assert done.returncode == 0, done.stderr
    assert "total wall clock" in done.stdout


def test_hosts_are_asked_about_workloads_of_other_packages_alone() -> None:
    assert others_of(WORKLOADS, {"cpu", "http"}) == []
