"""The matrix of faults: its harness, its page, and a few of its rows on real guests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import page
from tests.faults.row import Row, Rows, all_rows
from tests.faults.trying import APART, Tried, in_lanes, snapshots_of_rows, tried

QUICK = ("ctrl-c-prepare", "kill-runner-101", "kill-qemu-401", "full-export", "store-truncated", "clean-live")
IN_A_WORLD = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root")


@pytest.fixture(scope="module")
def snapshots() -> Iterator[Path]:
    """Frozen guests that the rows have in common."""
    with snapshots_of_rows() as folder:
        yield folder


@pytest.mark.nightly
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
    assert "1 faults, 1 of them tried (2026-11-25): 0 as required." in text
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
            # Its command line can be read only some time after exec has closed the pipe on which Popen waits.
            "import subprocess; said = 'print(1, flush=True); input()'; subprocess.Popen("
            "[sys.executable, '-c', said, str(world.home.state)], stdin=-1, stdout=-1).stdout.readline()",
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


def _row(name: str, *, alone: bool = False) -> Row:
    return Row(name, "", "", 1.0, lambda _world: "", guests=False, alone=alone)


def test_rows_are_tried_side_by_side_and_one_that_breaks_ends_no_other(tmp_path: Path) -> None:
    both, at_once, most = threading.Barrier(2, timeout=30), 0, {False: 0, True: 0}
    seen: dict[str, Tried] = {}

    def attempt(row: Row, log: Path) -> Tried:
        nonlocal at_once
        at_once += 1
        most[row.alone] = max(most[row.alone], at_once)
        if not row.alone:
            both.wait()
        at_once -= 1
        if row.name == "b":
            raise OSError("its folder is busy")
        return Tried(row.name, str(log), 0.5, ())

    rows = [_row("last", alone=True), _row("a"), _row("b"), _row("c"), _row("d"), _row("later", alone=True)]
    in_lanes(rows, 2, attempt, tmp_path.joinpath, lambda row, tried, _log: seen.update({row.name: tried}))
    assert list(seen)[-2:] == ["last", "later"]
    assert most == {False: 2, True: 1}
    assert seen["b"].problems == ("the row itself broke: OSError('its folder is busy')",)
    assert [seen[name].problems for name in "acd"] == [()] * 3
    assert seen["a"].happened == str(tmp_path / "a") and seen["a"].took >= 0


def test_what_ends_the_command_ends_the_rows_that_did_not_begin(tmp_path: Path) -> None:
    begun: list[str] = []

    def attempt(row: Row, _log: Path) -> Tried:
        begun.append(row.name)
        return Tried(row.name, "", None, ())

    def interrupted(row: Row, _tried: Tried, _log: Path) -> None:
        raise KeyboardInterrupt

    rows = [_row("a"), *(_row(f"later-{number}", alone=True) for number in range(3))]
    with pytest.raises(KeyboardInterrupt):
        in_lanes(rows, 1, attempt, tmp_path.joinpath, interrupted)
    assert begun == ["a"]


def test_what_is_kept_of_all_rows_stands_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "KEPT", tmp_path / "faults.json")
    page.keep(Tried("kill-disk", "it died", 1.0, (), 20.5))
    page.keep_whole(1692.4, 3, 2, 0.31)
    page.keep(Tried("kill-qemu-401", "no", 1.0, ("late",), 21.0))
    page.keep(Tried("no-row-any-more", "", 1.0, ()))
    kept = page.kept()
    assert list(kept) == ["all rows", "kill-disk", "kill-qemu-401"]
    assert kept["kill-disk"]["took"] == 20.5
    text = page.written("<!-- faults -->\n<!-- end -->\n", all_rows(), kept)
    assert "): 3 not as required, 28 min 12 s, 2 at a time, load before 0.3." in text
    assert f"{len(all_rows())} faults, 2 of them tried" in text and ": 1 as required." in text
