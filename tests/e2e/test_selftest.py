"""`vmlab selftest` on a real guest."""

import json
import os
import subprocess

import pytest

from tests.e2e.conftest import VMLAB, Home
from tests.host.inside.taken_away import TAKEN, judge
from vmlab.lab.selftest.trials import TRIALS

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]


def test_every_trial_works_and_nothing_is_left(home: Home) -> None:
    done = home.vmlab("selftest", "--concurrent", "--json")
    tried = json.loads(done.stdout)["trials"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert {one["name"]: one["state"] for one in tried if one["name"] in TRIALS} == dict.fromkeys(TRIALS, "works")
    assert not home.processes()
    assert not home.leftovers()
    assert home.runs() == []
    assert json.loads(home.vmlab("clean", "--json").stdout)["runs"] == []


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_what_runs_can_do_without_is_named_and_every_trial_works(home: Home) -> None:
    name = "KVM, cgroups and FUSE"
    argv = TAKEN[name].argv([*VMLAB, "selftest", "--concurrent", "--json"])
    done = subprocess.run(
        argv, env=home.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
    )
    judge(name, done)
    assert not home.processes()
    assert not home.leftovers()
