"""The console and every command make a plan in one way: they measure the same folder and read the same assets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vmlab.cli import one_run
from vmlab.cli.commands import plan_commands, scale_command
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.options import Beside
from vmlab.model.errors import RefusedError
from vmlab.model.places import runs_folder
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.terms import Overrides
from vmlab.tui import commands
from vmlab.tui.feed import planner

SCENARIO = """\
name: trial
guests: {vm: {memory: 512 MiB}}
workloads: {ub: {kind: unixbench, on: vm}}
"""
PLANNERS: dict[str, Callable[[str, Overrides], object]] = {
    "console plan": planner.planned,
    "console start": lambda path, overrides: commands.start(load(path), overrides),
    "plan": lambda path, overrides: plan_commands.plan.main(
        [path, "--size", overrides.size, *(f"--asset={one}" for one in overrides.assets)], standalone_mode=False
    ),
    "run": lambda path, overrides: one_run.started(load(path), overrides, InterruptedLater(), Beside()),
    "scale": lambda path, overrides: scale_command._planned(load(path), overrides, True, 2),
}


class MeasuredError(Exception):
    """Ends the planning with the folder that was measured."""


@pytest.fixture(params=PLANNERS)
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Plans a scenario with assets, as one of the commands does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for module in (commands, one_run):
        monkeypatch.setattr(module, "check_ready", lambda: None)
    path = tmp_path / "trial.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return lambda *assets: PLANNERS[request.param](str(path), Overrides(size="full", assets=assets))


def test_the_folder_of_the_runs_is_measured(make: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(folder: Path) -> str:
        raise MeasuredError(folder)

    runs_folder().mkdir(parents=True)
    monkeypatch.setattr("vmlab.plan.hosting.filesystem_of", measured)
    with pytest.raises(MeasuredError) as found:
        make()
    assert found.value.args == (runs_folder(),)


def test_assets_are_read(make: Callable[..., object]) -> None:
    with pytest.raises(RefusedError, match="/not/there"):
        make("unixbench=/not/there")
