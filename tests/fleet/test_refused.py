"""What a fleet does not run is refused in one line, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fleet import test_namespaced_fleet as real
from tests.fleet.local_hosts import FACTS, SCENARIO
from vmlab.cli.main import cli
from vmlab.fleet.starting import demand_fleet_plan
from vmlab.model.errors import UsageError
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides, Plan

UNTIL = f"{SCENARIO}until: {{spread: 2 %}}\n"


def _plan(text: str = SCENARIO, **said: object) -> Plan:
    overrides = Overrides(**{"hosts": ("hv1", "hv2"), **said})  # type: ignore[arg-type]
    return make_plan(read(Path("probe.yaml"), text), overrides, FACTS)


def test_repeats_go_on_up_to_a_spread_only_where_hosts_run_together() -> None:
    """Otherwise each host is at another repeat."""
    plan = _plan(UNTIL)
    with pytest.raises(UsageError, match="fixed number of repeats"):
        demand_fleet_plan(plan, FACTS)
    demand_fleet_plan(plan, FACTS, together=True)


def test_a_control_run_is_of_one_host() -> None:
    """Its noise is that of one."""
    with pytest.raises(UsageError, match="noise of one host"):
        demand_fleet_plan(_plan(hosts=None, control=True), FACTS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--together"], "--together is for --hosts"),
        (["--hosts", "hv1,hv2", "--together", "--spread"], "and excludes --spread"),
    ],
)
def test_options_that_make_no_sense(options: list[str], words: str) -> None:
    """By the command line."""
    done = CliRunner().invoke(cli, ["run", "cache-modes", *options])
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (real.SCENARIO, {"hosts": ("hv1",), "cache": ("none",)}),
        (real.CLIMB, {"tiles": (1,)}),
        (real.CLIMB, {"tiles": (2,)}),
    ],
)
def test_what_is_tried_on_real_guests_is_not_refused(text: str, said: dict[str, object]) -> None:
    """These scenarios are run by `make test-fleet` alone, which would take minutes to find a mistake in one."""
    demand_fleet_plan(_plan(text, **said), FACTS, together=text is real.CLIMB)
