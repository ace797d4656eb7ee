"""Several runs as one answer: which runs may be pooled, what each of them shows, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import HOST, Story
from vmlab.analysis.comparison.pooled import PooledComparison, pool
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.random_effects import random_effects
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.jsonable import jsonable
from vmlab.model.run import AxisValue
from vmlab.report.pooled_text import pooled_text
from vmlab.store.reader import RunReader

BLOCKS = (0.99, 1.0, 1.01, 1.02)
"""By how much the ratio of a block differs from that of its run."""
RATIOS = (0.57, 0.58, 0.62)


def run_of(
    path: Path,
    name: str,
    ratio: float,
    *,
    blocks: Sequence[float] = BLOCKS,
    axis: str = "cache",
    sides: tuple[AxisValue, AxisValue] = ("none", "writeback"),
    invalid: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    workloads: Sequence[str] = ("web",),
    **beginning: Any,
) -> RunDocument:
    """A run whose candidate takes `ratio` times as long; the baseline's cells of the repeats `invalid` are that."""
    scenario = str(beginning.pop("scenario", "tile"))
    story = Story(path / name / "run.sqlite", scenario, run=name)
    story.begin({axis: list(sides)}, {"columns": axis, "rows": "workloads", "baseline": None}, cells=8, **beginning)
    for repeat, factor in enumerate(blocks, start=1):
        for side, seconds in ((sides[0], 10.0 + repeat), (sides[1], (10.0 + repeat) * ratio * factor)):
            story.start_cell({axis: side}, repeat, settings=settings)
            for workload in workloads:
                story.measure(workload, seconds)
            story.end_cell("invalid" if side == sides[0] and repeat in invalid else "passed", wall=seconds)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def three(path: Path, **changes: Any) -> list[RunDocument]:
    """Three runs that differ a little more than their blocks do; `changes` are of the last one."""
    names = ("day-1", "day-2", "day-3")
    more: list[dict[str, Any]] = [{}, {}, changes]
    return [run_of(path, name, ratio, **own) for name, ratio, own in zip(names, RATIOS, more, strict=True)]


def one_line(text: str) -> str:
    return " ".join(text.split())


def refused(documents: Sequence[RunDocument], **asked: Any) -> str:
    with pytest.raises(UsageError) as error:
        pool(documents, **asked)
    return str(error.value)


def test_a_run_is_the_mean_of_its_blocks_and_runs_are_pooled_as_random_effects(tmp_path: Path) -> None:
    found = pool(three(tmp_path))
    assert (found.baseline, found.candidates) == ("cache none", ("cache writeback",))
    assert [row.workload for row in found.rows] == ["web", "total wall clock"]
    row = found.rows[0]
    logs = [[math.log(ratio * block) for block in BLOCKS] for ratio in RATIOS]
    means = [sum(own) / 4 for own in logs]
    variances = [sum((one - middle) ** 2 for one in own) / 3 / 4 for own, middle in zip(logs, means, strict=True)]
    expected = random_effects(means, variances)
    assert row.effects is not None
    assert (row.effects.mean, row.effects.tau) == pytest.approx((expected.mean, expected.tau))
    assert row.percent == pytest.approx(100 * math.expm1(expected.mean))
    assert row.prediction is not None and row.interval is not None and row.percent is not None
    assert row.prediction[0] < row.interval[0] < row.percent < row.interval[1] < row.prediction[1]
    assert [one.percent for one in row.of_runs] == [pytest.approx(100 * math.expm1(one)) for one in means]
    assert found.exit_code == ExitCode.PASSED


def test_the_text_says_the_answer_each_run_and_the_machines(tmp_path: Path) -> None:
    documents = three(tmp_path, host={**HOST, "hostname": "pve2", "kernel": "6.12.0"}, accelerator="kvm")
    text = one_line(pooled_text(pool(documents)))
    assert "3 runs of tile at size smoke, 2026-11-21, pooled; baseline: cache none" in text
    assert "Another run like these: web -" in text
    assert "day-1 -42.7 % (-43.9 to -41.5)" in text
    assert "libvirt 9.0.0 · bare metal: 2 runs" not in text and "· tcg: 2 runs, 2026-11-21" in text
    assert "pve2 · 2 x AMD EPYC 7302P 16-Core Processor · Linux 6.12.0" in text
    assert "TCG on some of the runs: these values describe emulation" in text
    assert "each interval is at 95 %, and not corrected for the number of metrics" in text


def test_the_document_has_all_of_that(tmp_path: Path) -> None:
    body = jsonable(pool(three(tmp_path, host={**HOST, "kernel": "6.12.0"}), chosen=["web.run_time"]))
    assert body["schema"] == "vmlab.pooled/1"
    assert [run["id"] for run in body["runs"]] == ["day-1", "day-2", "day-3"]
    assert body["differs"] == [
        {"what": "host kernel", "values": ["6.1.0-18-amd64", "6.1.0-18-amd64", "6.12.0"], "at": []}
    ]
    (row,) = body["rows"]
    assert (row["runs"], row["confidence_percent"], row["because"]) == (3, 95.0, "")
    assert row["prediction_percent"][0] < row["percent"] < row["prediction_percent"][1]
    assert row["spread_percent"] > 0 and row["q"] > 0 and 0 < row["q_p"] < 1 and 0 < row["i2_percent"] < 100
    assert [(one["run"], one["blocks"]) for one in row["of_runs"]] == [("day-1", 4), ("day-2", 4), ("day-3", 4)]
    assert body["chosen"] == ["web.run_time"]


def test_two_runs_are_too_few_and_one_counts_once(tmp_path: Path) -> None:
    documents = three(tmp_path)
    assert refused(documents[:2]).startswith("too few runs: a pooled answer takes three at least")
    assert refused([*documents, documents[0]]) == "run day-1 is named twice; each counts once"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scenario": "other"}, "do not measure the same: scenario differs: day-1 and 1 more tile, day-3 other"),
        ({"size": "full"}, "size differs"),
        ({"settings": {"workloads": {"web": {"requests": 9}}}}, "differs"),
        ({"axis": "tiles", "sides": (1, 2)}, "run day-1 compares with cache none, run day-3 with tiles 1"),
        ({"sides": ("writeback", "none")}, "run day-3 with cache writeback: name the baseline with --baseline"),
    ],
)
def test_runs_that_do_not_measure_the_same_are_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    assert words in refused(three(tmp_path, **changes))


def test_a_baseline_that_is_named_holds_for_each_run(tmp_path: Path) -> None:
    found = pool(three(tmp_path), baseline="writeback")
    assert (found.baseline, found.candidates) == ("cache writeback", ("cache none",))
    assert found.rows[0].percent is not None and found.rows[0].percent > 60
    assert "is none of the sides" in refused(three(tmp_path / "again"), baseline="unsafe")


def test_a_run_that_varies_nothing_has_no_difference(tmp_path: Path) -> None:
    story = Story(tmp_path / "alone" / "run.sqlite", run="alone").begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 10.0}, 11.0)
    with RunReader(story.end()) as reader:
        alone = run_document(reader)
    assert refused([*three(tmp_path)[:2], alone]) == "run alone varies no axis, so it has no difference to pool"


def undecided(found: PooledComparison, words: str) -> None:
    assert found.exit_code == ExitCode.INVALID
    assert words in found.rows[0].because
    assert found.rows[0].percent is None and jsonable(found)["rows"][0]["interval_percent"] is None
    assert f"? web: {words}" in one_line(pooled_text(found))


def test_a_run_of_one_block_has_no_variance_and_is_named(tmp_path: Path) -> None:
    found = pool(three(tmp_path, blocks=(1.0,)))
    undecided(found, "run day-3 has 1 repeat in which both sides count; its own spread takes 2 at least")


def test_invalid_cells_count_for_nothing(tmp_path: Path) -> None:
    found = pool(three(tmp_path / "one", invalid=(1, 2)))
    assert [one.blocks for one in found.rows[0].of_runs] == [4, 4, 2]
    few = "a run has 2 repeats that count: the interval of the difference then covers 89 % at the least"
    assert few in one_line(pooled_text(found))
    assert few not in one_line(pooled_text(pool(three(tmp_path / "enough"))))
    undecided(pool(three(tmp_path / "all", invalid=(1, 2, 3, 4))), "run day-3: a side is invalid")


def test_a_reading_of_zero_has_no_ratio(tmp_path: Path) -> None:
    undecided(pool(three(tmp_path, blocks=(1.0, 0.0, 1.0))), "run day-3: a value is 0 or below, and has no ratio")


def test_several_workloads_have_one_overall_figure(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    found = pool([run_of(tmp_path, *one, workloads=("web", "mail")) for one in zip(names, RATIOS, strict=True)])
    web, overall = found.rows[0].percent, found.rows[-1]
    assert (overall.workload, overall.metric) == ("overall", "overall")
    assert web is not None and overall.percent == pytest.approx(100 * (1 / (1 + web / 100) - 1))
    assert "overall: the geometric mean of the workloads, above 0 where" in one_line(pooled_text(found))


def test_a_text_fits_a_terminal(tmp_path: Path) -> None:
    assert max(map(len, pooled_text(pool(three(tmp_path)), 80).splitlines())) <= 80
