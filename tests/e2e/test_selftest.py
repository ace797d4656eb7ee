"""`vmlab selftest` on a real guest."""

import json

import pytest

from tests.e2e.conftest import Home
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
