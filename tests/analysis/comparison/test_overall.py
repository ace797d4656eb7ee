"""The overall figure: the geometric mean of the workloads' ratios, with a test and an interval by blocks."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import gmean, wilcoxon

from tests.store.stories import Story
from vmlab.analysis.compared_runs import noise_of
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.comparison.gate import Condition, State
from vmlab.analysis.comparison.judging import judge
from vmlab.analysis.comparison.meetings import Side, sides_by_axis
from vmlab.analysis.comparison.overall import OVERALL, Overall, Part, overall_of
from vmlab.analysis.comparison.result_table import result_tables
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import spread
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import jsonable
from vmlab.report.comparison_text import comparison_table
from vmlab.report.headline import explanation
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

Times = Sequence[Sequence[float]]
"""The readings of the baseline, and those of the candidate."""


def near(value: object, rel: float | None = None) -> Any:
    """What is equal to all that is as near to `value`."""
    return pytest.approx(value, rel=rel)


def _figure(values: Sequence[float], run: str = "", skipped: Sequence[int] = ()) -> Figure:
    readings = tuple(OneReading(value, at, run) for at, value in enumerate(values, 1) if at not in skipped)
    return Figure("passed", spread([one.value for one in readings]), 0, readings)


def _part(name: str, sides: Times, unit: str = "s", *, more: bool = False) -> Part:
    return Part(name, "run_time", unit, more, tuple(_figure(side) for side in sides))


def _overall(*parts: Part) -> Overall:
    found = overall_of({}, parts)
    assert found is not None
    return found


def _difference(*parts: Part) -> Difference:
    return _overall(*parts).differences[0]


def _drawn(seed: int, workloads: int, repeats: int, faster: float = 1.0) -> list[Times]:
    """Run times of workloads that share what a repeat's host does, and have chance of their own."""
    draw = random.Random(seed)
    host = [draw.gauss(0, 0.1) for _ in range(repeats)]
    return [
        [
            [size * draw.lognormvariate(speed, 0.03 * number) / by for speed in host]
            for size, by in ((10.0**number, 1.0), (10.0**number, faster))
        ]
        for number in range(1, workloads + 1)
    ]


def test_it_is_what_scipy_finds_of_the_ratios_of_each_repeat() -> None:
    web, mail, disk = _drawn(1, 3, 9, faster=1.05)
    rates = [[1000 / value for value in side] for side in disk]
    found = _difference(_part("web", web), _part("mail", mail), _part("disk", rates, "1/s", more=True))
    blocks = [
        float(gmean([web[0][at] / web[1][at], mail[0][at] / mail[1][at], rates[1][at] / rates[0][at]]))
        for at in range(9)
    ]
    expected = wilcoxon([math.log(one) for one in blocks], method="exact")
    assert found.p == near(float(expected.pvalue), rel=1e-9)
    walsh = sorted(math.sqrt(one * other) for at, one in enumerate(blocks) for other in blocks[at:])
    middle = walsh[len(walsh) // 2] if len(walsh) % 2 else (walsh[21] + walsh[22]) / 2
    assert found.ratio == near(middle, rel=1e-9)
    # Of 9 pairs the 6th shift from either end: P(rank sum <= 5) = 10 / 512 a side, in tables of Wilcoxon's test.
    assert found.interval == (near(100 * (walsh[5] - 1)), near(100 * (walsh[-6] - 1)))
    assert (found.family, found.readings, found.paired) == (1, 9, True)


def test_one_reading_each_is_the_geometric_mean_of_the_ratios() -> None:
    found = _difference(_part("web", [[10.0], [5.0]]), _part("mail", [[3.0], [24.0]]))
    assert (found.verdict, found.ratio) == (Verdict.ONE_EACH, near(math.sqrt(2 / 8)))


def test_the_other_side_as_the_baseline_gives_the_inverse() -> None:
    drawn = _drawn(2, 3, 10, faster=1.2)
    one = _difference(*(_part(f"w{at}", sides) for at, sides in enumerate(drawn)))
    other = _difference(*(_part(f"w{at}", sides[::-1]) for at, sides in enumerate(drawn)))
    assert one.ratio is not None and other.ratio is not None and one.interval and other.interval
    assert one.ratio * other.ratio == near(1.0)
    low, high = (1 + end / 100 for end in other.interval)
    assert one.interval == (near(100 / high - 100), near(100 / low - 100))
    assert (one.p, one.verdict, one.better, other.better) == (other.p, other.verdict, True, False)


@pytest.mark.parametrize("seed", range(5))
def test_neither_units_nor_the_order_of_workloads_matter(seed: int) -> None:
    drawn = _drawn(seed, 4, 8)
    parts = [_part(f"w{at}", sides) for at, sides in enumerate(drawn)]
    plain = _difference(*parts)
    scaled = [[value * 3.7e9 for value in side] for side in drawn[1]]
    random.Random(seed).shuffle(parts)
    for other in (_difference(*parts), _difference(*(_part("w1", scaled) if p.workload == "w1" else p for p in parts))):
        assert (other.ratio, other.p) == (near(plain.ratio), plain.p)
        assert other.interval == near(plain.interval)


def test_only_repeats_count_in_which_all_workloads_have_both_readings() -> None:
    web, mail = _drawn(3, 2, 9)
    sides = (_figure(mail[0], skipped=[2]), _figure(mail[1], skipped=[5]))
    found = _difference(_part("web", web), Part("mail", "run_time", "s", False, sides))
    kept = [at for at in range(9) if at not in (1, 4)]
    same = _difference(*(_part("w", [[side[at] for at in kept] for side in one]) for one in (web, mail)))
    assert (found.readings, found.p, found.ratio) == (7, same.p, near(same.ratio))


def test_a_run_to_which_repeats_were_added_is_judged_at_the_level_of_its_other_figures() -> None:
    def added(part: Part) -> Part:
        sides = (
            replace(side, readings=tuple(replace(one, level_divisor=2) for one in side.readings))
            for side in part.figures
        )
        return replace(part, figures=tuple(sides))

    parts = [_part(f"w{at}", sides) for at, sides in enumerate(_drawn(4, 2, 8))]
    found, plain = (_difference(*those) for those in (map(added, parts), parts))
    assert (found.level_divisor, plain.level_divisor) == (2, 1)
    assert found.p == plain.p


def test_between_runs_each_run_is_one_reading() -> None:
    def side(by: float) -> Figure:
        own = [OneReading(by * (10 + run + at / 10), at, f"{by}-{run}") for run in range(4) for at in (1, 2, 3)]
        return Figure("passed", spread([one.value for one in own]), 0, tuple(own))

    figures = (side(1.0), side(0.5))
    found = _difference(Part("web", "x", "s", False, figures), Part("mail", "x", "s", False, figures))
    assert (found.readings, found.paired, found.verdict, found.better) == (4, False, Verdict.PROVEN, True)
    assert found.ratio == near(2.0, rel=0.1)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_reading_without_a_ratio_leaves_no_overall_figure(value: float) -> None:
    found = _overall(_part("web", [[1.0, 2.0], [1.0, value]]), _part("mail", [[1.0, 2.0], [1.0, 2.0]]))
    assert found.because == "a value of web run_time is 0 or below, and has no ratio"
    assert [one.verdict for one in found.differences] == [Verdict.NOT_COMPARED]


def test_readings_at_the_ends_of_all_floats_break_nothing() -> None:
    parts = [_part(name, [[5e-324, 1.0], [1.7e308, 1.0]]) for name in ("web", "mail")]
    assert _overall(*parts).because == "the values are too far apart for a ratio"
    json.dumps(jsonable(_overall(*parts)), allow_nan=False)


def test_there_is_none_of_one_workload() -> None:
    assert overall_of({}, [_part("web", [[1.0], [2.0]])]) is None


def test_where_nothing_differs_it_alarms_in_at_most_five_percent() -> None:
    tries = 400
    alarms = sum(
        _difference(*(_part(f"w{at}", sides) for at, sides in enumerate(_drawn(1000 + seed, 3, 8)))).proven
        for seed in range(tries)
    )
    # By the exact distribution of 8 pairs it is 3.9 %.
    assert 0 < alarms <= 0.05 * tries


def _told(path: Path, faster: float, *, failed: str = "", **beginning: object) -> RunDocument:
    table = {"columns": "cache", "rows": "workloads", "baseline": "none"}
    story = Story(path / "run.sqlite", run=path.name)
    story.begin({"cache": ["none", "writeback"]}, table, **beginning)  # type: ignore[arg-type]
    web, mail = _drawn(7, 2, 8, faster)
    for at in range(8):
        for side, cache in enumerate(("none", "writeback")):
            story.start_cell({"cache": cache}, at + 1)
            story.measure("web", web[side][at])
            story.measure("mail", mail[side][at])
            story.end_cell("invalid" if cache == failed else "passed", wall=mail[side][at])
    with RunReader(story.end()) as reader:
        return run_document(reader)


def _compared(document: RunDocument) -> Comparison:
    return compare(sides_by_axis(document))


def test_it_stands_in_a_run_in_a_comparison_and_in_their_documents(tmp_path: Path) -> None:
    document = _told(tmp_path / "run", 1.5)
    comparison = _compared(document)
    (of_run,) = (one for table in result_tables(document) for one in table.overall)
    (found,) = comparison.overall
    assert of_run.differences == found.differences
    assert of_run.axes == {"cache": "writeback"}
    line = "overall, the geometric mean of web and mail: {} is {} times as fast as {}, better, difference proven"
    own = found.differences[0]
    assert own.ratio is not None and own.interval is not None
    size = f"{own.ratio:.3f} ({1 + own.interval[0] / 100:.3f} to {1 + own.interval[1] / 100:.3f})"
    assert line.format("writeback", size, "none") in " ".join(run_table(document).split())
    assert line.format("cache writeback", size, "cache none") in " ".join(comparison_table(comparison).split())
    (told,) = jsonable(comparison)["overall"]
    assert told["metrics"] == [{"workload": name, "metric": "run_time"} for name in ("web", "mail")]
    assert told["candidates"][0]["difference"]["family"] == 1
    assert [len(told["baseline"]["readings"]), told["because"]] == [8, ""]


def test_without_a_figure_that_passed_only_the_explanation_says_why(tmp_path: Path) -> None:
    comparison = _compared(_told(tmp_path / "run", 1.5, failed="writeback"))
    assert "overall" not in comparison_table(comparison)
    assert "No overall value: a side has no repeat in which all workloads passed." in explanation(comparison)[0]


@pytest.mark.parametrize(
    ("faster", "text", "state"),
    [
        (1.5, "overall > +10 %", State.MET),
        (1.5, "overall < -10 %", State.NOT_MET),
        (0.5, "overall < -10 %", State.MET),
        (1.0, "overall < -20 %", State.NOT_MET),
    ],
)
def test_a_gate_asks_for_it(faster: float, text: str, state: State, tmp_path: Path) -> None:
    (answer,) = judge(_compared(_told(tmp_path / "run", faster)), [Condition.parse(text)]).gate
    assert (answer.state, answer.workload, answer.metric) == (state, OVERALL, OVERALL)


@pytest.mark.parametrize("text", ["overall > 2", "overall.run_time > +5 %"])
def test_a_gate_refuses_what_the_overall_figure_has_not(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="overall"):
        judge(_compared(_told(tmp_path / "run", 1.0)), [Condition.parse(text)])


def test_the_noise_of_a_control_run_is_of_the_same_workloads(tmp_path: Path) -> None:
    noise = noise_of(_told(tmp_path / "noisy", 1.3))
    document = _told(tmp_path / "run", 1.1)
    (found,) = compare(sides_by_axis(document), noise).overall
    assert found.differences[0].noise == noise.percents[found.key]
    assert not found.differences[0].proven
    sides: list[Side] = sides_by_axis(document)
    (other,) = compare(sides, noise, ["web.run_time", "mail.run_time"]).overall
    assert (other.key, other.differences) == (found.key, found.differences)
    assert compare(sides, noise, ["web.run_time"]).overall == ()
