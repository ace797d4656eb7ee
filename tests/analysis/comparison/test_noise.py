"""The noise of a control run in a comparison: where it comes from, how large it is, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.store.stories import HOST, Story
from vmlab.analysis.compared_runs import noise_of
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison, Noise
from vmlab.analysis.comparison.meetings import Side, sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.jsonable import jsonable
from vmlab.report.comparison_text import comparison_table
from vmlab.store.reader import RunReader

DRAWN = (0.3, -0.2, 0.25, -0.35, 0.1, -0.15, 0.05, -0.1)
SETTINGS = {"cache": "none", "tiles": 1}


def told(
    path: Path,
    axis: str,
    sides: Mapping[str, Sequence[float]],
    settings: Sequence[dict[str, Any]] = (SETTINGS, SETTINGS),
    broken: int = 0,
    **beginning: Any,
) -> RunDocument:
    """A run with a cell for each side and repeat; the first side fails in the first `broken` repeats."""
    table = {"columns": axis, "rows": "workloads", "baseline": next(iter(sides))}
    story = Story(path / "run.sqlite", run=path.name).begin({axis: list(sides)}, table, cells=16, **beginning)
    for repeat in range(1, 9):
        for number, (value, seconds) in enumerate(sides.items()):
            story.start_cell({axis: value}, repeat, settings=settings[number])
            story.measure("web", seconds[repeat - 1])
            failed = number == 0 and repeat <= broken
            story.end_cell("invalid" if failed else "passed", wall=seconds[repeat - 1])
    with RunReader(story.end()) as reader:
        return run_document(reader)


def control(path: Path, **changes: Any) -> RunDocument:
    """A control run as the program makes one."""
    sides = {"A": [10.0] * 8, "B": [10 + one for one in DRAWN]}
    return told(path / "noisy", "side", sides, **{"control": True, **changes})


def compared(path: Path, noise: Noise | None) -> Comparison:
    """A run in which the candidate is 2 % slower, always, beside the noise of another."""
    document = told(path / "run", "cache", {"none": [10.0] * 8, "writeback": [10.2] * 8})
    return compare(sides_by_axis(document), noise)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_comparison_says_where_its_noise_comes_from_and_how_large_it_is(tmp_path: Path) -> None:
    document = control(tmp_path)
    assert [side.label for side in sides_by_axis(document)] == ["side A", "side B"]
    noise = noise_of(document)
    size = noise.percents["web", "run_time", ""]
    assert 2.0 < size < 4.0
    text = one_line(comparison_table(compared(tmp_path, noise)))
    assert (
        "this host's noise, up to which no difference is called real, by 8 blocks of control run noisy, "
        f"2026-11-21 14:30 UTC: web {size:.1f} %, total wall clock {size:.1f} %"
    ) in text
    assert "web (s) 10.0 ± 0.0 10.2 ± 0.0 ~ +2.0 %" in text
    assert "web (s) 10.0 ± 0.0 10.2 ± 0.0 +2.0 %" in one_line(comparison_table(compared(tmp_path / "again", None)))
    assert compared(tmp_path / "third", noise).warnings == ()


def test_blocks_that_do_not_count_are_told(tmp_path: Path) -> None:
    noise = noise_of(control(tmp_path, broken=1))
    assert (noise.repeats, noise.blocks) == (7, 8)
    assert "by 7 of 8 blocks of control run noisy" in one_line(comparison_table(compared(tmp_path, noise)))


def test_noise_of_other_conditions_is_doubted(tmp_path: Path) -> None:
    elsewhere = control(tmp_path, size="full", accelerator="kvm", seed=9, host={**HOST, "kernel": "6.12.0"})
    assert compared(tmp_path, noise_of(elsewhere)).warnings == tuple(
        f"the noise was measured under other conditions: {what} differs: cache none {one}, noisy {other}"
        for what, one, other in (
            ("size", "smoke", "full"),
            ("accelerator", "tcg", "kvm"),
            ("host kernel", "6.1.0-18-amd64", "6.12.0"),
        )
    )


def test_a_run_that_is_no_control_run_is_taken_and_doubted_unless_its_sides_are_alike(tmp_path: Path) -> None:
    doubt = (
        "run noisy is not known to have one configuration on both sides, as a control run has: what is taken for noise "
        "may be a difference"
    )
    other = {**SETTINGS, "cache": "writeback"}
    for name, settings, warnings in (
        ("alike", (SETTINGS, SETTINGS), ()),
        ("other", (SETTINGS, other), (doubt,)),
        ("unknown", ({}, {}), (doubt,)),
    ):
        noise = noise_of(control(tmp_path / name, settings=settings, control=False))
        found = compared(tmp_path / name, noise)
        assert found.warnings == warnings, name
        assert "by 8 blocks of run noisy" in one_line(comparison_table(found))


def test_noise_may_be_that_of_runs_compared_with_each_other(tmp_path: Path) -> None:
    noise = noise_of(control(tmp_path))
    runs = [told(tmp_path / name, "cache", {"none": [seconds] * 8}) for name, seconds in (("x", 10.0), ("y", 11.0))]
    found = compare([Side.of(one.run.id, one) for one in runs], noise)
    assert jsonable(found)["noise"]["run"] == "noisy" and found.warnings == ()
