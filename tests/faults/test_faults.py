"""The matrix of faults: its harness, its page, and a few of its rows on real guests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import page
from tests.faults.row import Rows, all_rows
from tests.faults.trying import APART, snapshots_of_rows, tried

QUICK = ("ctrl-c-prepare", "kill-runner-101", "kill-qemu-401", "full-export", "store-truncated", "clean-live")
IN_A_WORLD = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root")


@pytest.fixture(scope="module")
def snapshots() -> Iterator[Path]:
    """Frozen guests that the rows have in common."""
    with snapshots_of_rows() as folder:
        yield folder


@pytest.mark.exhaustive
@pytest.mark.guests
@pytest.mark.xdist_group("runs")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", QUICK)
def test_a_fault_goes_as_its_row_says(name: str, image: str, snapshots: Path, tmp_path: Path) -> None:
    result = tried(all_rows()[name], snapshots, tmp_path / "log")
    assert result.problems == (), (tmp_path / "log").read_text()


def test_there_are_forty_rows_and_twelve_kills_at_moments_with_a_seed() -> None:
    rows = all_rows()
    assert len(rows) >= 40
    assert len([name for name in rows if re.fullmatch(r"kill-.*-[0-9]+", name)]) >= 9
    assert all(row.done and row.should and row.deadline > 0 for row in rows.values())


def test_the_page_is_what_rows_and_kept_results_make_it() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text, all_rows(), page.kept()) == text


def test_a_row_that_does_not_go_as_it_should_stands_out_on_the_page() -> None:
    rows = Rows()
    rows.add("burns", "a | fire", "*nothing*")(lambda _world: "")
    result = {
        "happened": "it burnt",
        "seconds": 1.0,
        "problems": ["a <table> is gone"],
        "date": "2026-11-25",
        "machine": "m",
    }
    text = page.written("<!-- faults -->\n<!-- end -->\n", {one.name: one for one in rows}, {"burns": result})
    assert "1 faults, 1 of them tried (2026-11-25): 0 went as they should." in text
    assert "| a \\| fire | \\*nothing\\* | **no:** it burnt | 1.0 |" in text
    assert "- burns: a \\<table\\> is gone" in text


def test_rows_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[all_rows.__module__]
    monkeypatch.setattr(module.pkgutil, "iter_modules", lambda _path: [type("M", (), {"name": "a_signals"})()] * 2)
    with pytest.raises(ValueError, match="two rows are called ctrl-c-"):
        all_rows()


_CHECKED = """
import json, sys, time
from collections.abc import Iterator
from pathlib import Path
from tests.faults.world import World
world = World(Path(sys.argv[1]), Path(sys.argv[2]))
{harm}
print(json.dumps(list(world.check())))
world.close()
"""


@IN_A_WORLD
@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("", None),
        ("next(iter(world._decoys['files'])).unlink()", "the decoy vm.qcow2 was touched"),
        ("world._decoys['process'].kill(); world._decoys['process'].wait()", "the decoy process was ended"),
        (
            "file = world.recorded().open('r+b'); file.seek(8192); file.write(bytes(4096)); file.close()",
            "run.sqlite",
        ),
        (
            "import subprocess; subprocess.Popen([sys.executable, '-c', 'input()', str(world.home.state)], stdin=-1)",
            "processes are left",
        ),
    ],
    ids=["nothing", "file", "process", "store", "left"],
)
def test_harm_that_a_row_does_to_others_is_noticed(harm: str, told: str | None, tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    (tmp_path / "snapshots").mkdir()
    program = [sys.executable, "-c", _CHECKED.format(harm=harm), str(tmp_path / "world"), str(tmp_path / "snapshots")]
    done = subprocess.run(
        [*APART, *program], capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip()
    assert said == "[]" if told is None else told in said, said
