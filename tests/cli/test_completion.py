"""What a shell is told when Tab is pressed, by the program itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vmlab.cli.completion import TABLE
from vmlab.model.places import runs_folder, state_folder

ROOT = Path(__file__).parents[2]
RUN = "20261121-143000-tile-0001"


@pytest.fixture(autouse=True)
def run() -> None:
    """A run, and a name for it."""
    (runs_folder() / RUN).mkdir(parents=True)
    (state_folder() / "tags").mkdir()
    (state_folder() / "tags" / "baseline").write_text(RUN)


def completed(line: str, *options: str) -> list[str]:
    """What bash is told for the last word of `line`, without the sort of each."""
    words = line.split()
    asked = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - (not line.endswith(" "))),
        "_VMLAB_COMPLETE": "bash_complete",
    }
    program = [sys.executable, *options, "-m", "vmlab"]
    environment = os.environ | asked | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert options or done.stderr == ""
    return [item.partition(",")[2] for item in done.stdout.split()] if not options else done.stderr.splitlines()


def test_the_table_is_made_of_the_commands_and_scenarios_as_they_are() -> None:
    program = [sys.executable, str(ROOT / "packaging" / "completion.py")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == TABLE.read_text(encoding="utf-8"), (
        "the commands have changed: packaging/completion.py > vmlab/cli/completion.json"
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("vmlab val", ["validate"]),
        ("vmlab run tile-m", ["tile-memory", "tile-m"]),
        ("vmlab show ba", ["baseline"]),
        ("vmlab show 2026", [RUN]),
        ("vmlab compare last,base", ["last,baseline"]),
        ("vmlab show --ce", ["--cell"]),
        ("vmlab run tile --size s", ["smoke"]),
        (f"vmlab compare {RUN} --fail-if web.latency_p9", ["web.latency_p95", "web.latency_p99"]),
        ("vmlab set ca", ["cache="]),
        (f"vmlab set {RUN} cache=w", ["cache=writeback"]),
        ("vmlab set sk", ["skip"]),
        ("vmlab image b", ["build"]),
        ("vmlab nothing x", []),
    ],
)
def test_the_last_word_is_completed(line: str, found: list[str]) -> None:
    assert completed(line) == found


def test_nothing_is_loaded_that_a_press_of_tab_would_wait_for() -> None:
    loaded = {line.rpartition("|")[2].strip() for line in completed("vmlab run ti", "-X", "importtime")}
    assert "click" in loaded
    assert not loaded & {"pydantic", "textual", "sqlite3", "ruamel.yaml", "vmlab.cli.commands.run_commands"}
