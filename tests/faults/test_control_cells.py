"""Control cells of several folders and machines count together, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.control_cells import KINDS, measured_elsewhere


@pytest.mark.parametrize(("own", "elsewhere"), [("run-b", 200), ("run-a", 90), ("run-d", 290)])
def test_runs_of_other_folders_count_once_and_own_ones_do_not(tmp_path: Path, own: str, elsewhere: int) -> None:
    kept = {
        "run-a": {"kind": "cpu", "outcomes": {"passed": 199, "invalid": 1, "aborted": 3}},
        "run-b": {"kind": "cpu", "outcomes": {"passed": 90, "failed": 7}},
        "run-c": {"kind": "disk", "outcomes": {"passed": 50}},
    }
    folder = tmp_path / next(iter(KINDS))
    (folder / "state/vmlab/runs" / own).mkdir(parents=True)
    assert measured_elsewhere(kept, folder) == elsewhere
