"""`vmlab ls` is asked often, and loads neither models nor stores where nothing is new; nor does `compare` a planner."""

import os
import subprocess
import sys
from pathlib import Path

from tests.store.stories import Story

_LISTS = """
import sys
from vmlab.cli.main import command_line
assert command_line(["ls"]) == 0
loaded = {"pydantic", "sqlite3", "lxml", "textual", "rich", "asyncio", "vmlab.report.blocks", "vmlab.model.results"}
print(*sorted(loaded & set(sys.modules)))
"""


def test_the_list_of_runs_loads_what_it_needs(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _LISTS], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "", done.stdout


_COMPARES = """
import sys
from vmlab.cli.main import command_line
assert command_line(["compare", *sys.argv[1:]]) == 0
loaded = {"vmlab.plan", "vmlab.model.scenarios.scenario", "vmlab.analysis.comparison.pooled", "lxml", "textual", "rich"}
print(*sorted(loaded & set(sys.modules)))
"""


def test_a_comparison_loads_no_models_of_scenarios(tmp_path: Path) -> None:
    stores = [str(tmp_path / name / "run.sqlite") for name in "ab"]
    for store in stores:
        story = Story(Path(store), run=Path(store).parent.name).begin({"cache": ["none"]})
        story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
        story.end()
    done = subprocess.run(
        [sys.executable, "-c", _COMPARES, *stores], env={**os.environ}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "", done.stdout
