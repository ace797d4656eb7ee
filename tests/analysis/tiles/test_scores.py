"""Scores over tiles, by hand and for any readings."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from vmlab.analysis.cell_shape import CellDocument, WorkloadDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import unrun_document
from vmlab.analysis.figures.over_tiles import Directions, over_tiles
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.knee import KneeVerdict
from vmlab.analysis.tiles.scores import PlaceScores, ScoreRow, scores_of
from vmlab.analysis.tiles.throughput import index_of, reference_of
from vmlab.model.jsonable import jsonable
from vmlab.model.results import Measurement, Provision

METRICS = {"web": "requests_per_second", "mail": "run_time"}
UNITS = {"requests_per_second": "1/s", "run_time": "s"}
Tiles = Sequence[Mapping[str, float]]
"""For each tile the figure of each workload, in its own metric."""


def cell(
    number: int, tiles: Tiles, repeat: int = 1, outcome: str = "passed", cache: str = "none", **settings: Any
) -> CellDocument:
    """A cell whose workloads ran in all tiles at the same time."""
    taken = [
        Measurement(name, at, "vm", METRICS[name], value, UNITS[METRICS[name]])
        for at, tile in enumerate(tiles, start=1)
        for name, value in tile.items()
    ]
    ran = [WorkloadDocument(one.workload, one.tile, one.guest, "passed", "", 0.0, 30.0) for one in taken]
    return CellDocument(
        cell=number,
        axes={"tiles": len(tiles), "cache": cache},
        settings=settings,
        repeat=repeat,
        outcome=outcome,
        wall_seconds=30.0,
        provision=Provision("restored", guests=4),
        workloads=ran,
        measurements=taken,
        over_tiles=over_tiles(taken, ran, Directions()),
    )


def run(cells: Sequence[CellDocument], name: str = "one") -> RunDocument:
    bare = replace(unrun_document("tile", {}).run, id=name, size="smoke", accelerator="kvm", seed=1)
    said = replace(bare, throughput=METRICS)
    return RunDocument(run=said, cells=list(cells), scores={"share_percent": 10})


def rows(place: PlaceScores) -> dict[tuple[str | None, int], ScoreRow]:
    return {(row.workload, row.tiles): row for row in place.rows}


def value(figure: Any) -> float:
    assert figure.spread is not None
    return float(figure.spread.mean)


# Rates of 10 a second alone, and of 8 and 4 together; the same in seconds for mail.
ALONE: Tiles = [{"web": 10.0, "mail": 10.0}]
TWO: Tiles = [{"web": 8.0, "mail": 12.5}, {"web": 4.0, "mail": 25.0}]


def test_scores_of_two_tiles_by_hand() -> None:
    (place,) = scores_of(run([cell(1, ALONE), cell(2, TWO)]))
    assert place.axes == {"cache": "none"}
    assert list(rows(place)) == [("web", 2), ("mail", 2), (None, 2)]
    for row in place.rows:
        assert value(row.efficiency) == pytest.approx(12 / 20)
        assert value(row.gain) == pytest.approx(20.0)
        assert value(row.jain) == pytest.approx(12**2 / (2 * (8**2 + 4**2)))
        assert value(row.cv) == pytest.approx(100 * 8**0.5 / 6), "n - 1 below"
        assert value(row.worst) == pytest.approx(100 * 4 / 6) and row.worst_tile == 2
        assert row.efficiency.spread is not None and row.efficiency.spread.half_width is None
        assert row.together == 1.0 and not row.apart
    assert value(rows(place)["web", 2].throughput) == 12.0
    assert value(rows(place)["mail", 2].throughput) == pytest.approx(0.12), "the inverse of the run time"


def test_one_tile_has_no_scores() -> None:
    assert scores_of(run([cell(1, ALONE)])) == []


def test_without_a_tile_alone_only_fairness_is_known() -> None:
    (place,) = scores_of(run([cell(1, TWO)]))
    assert place.knee is None
    assert all(row.efficiency.spread is None and row.gain.spread is None for row in place.rows)
    assert value(place.rows[0].jain) == pytest.approx(0.9)


@pytest.mark.parametrize("outcome", ["invalid", "failed", "aborted"])
def test_cells_that_did_not_pass_have_no_score(outcome: str) -> None:
    assert scores_of(run([cell(1, ALONE), cell(2, TWO, outcome=outcome)])) == []
    (place,) = scores_of(run([cell(1, ALONE, outcome=outcome), cell(2, TWO)]))
    assert place.rows[0].efficiency.spread is None


def test_a_workload_that_a_tile_lacks_has_no_score() -> None:
    (place,) = scores_of(run([cell(1, ALONE), cell(2, [*TWO[:1], {"mail": 25.0}])]))
    assert list(rows(place)) == [("mail", 2)]


def test_scores_are_made_within_each_repeat_and_the_warm_up_is_none() -> None:
    faster = [[{name: v * (2 if name == "web" else 0.5) for name, v in one.items()} for one in t] for t in (ALONE, TWO)]
    cells = [cell(1, ALONE, 0), cell(2, TWO, 0), cell(3, ALONE), cell(4, TWO), cell(5, faster[0], 2)]
    once = scores_of(run(cells))[0].rows[0].efficiency
    assert [one.repeat for one in once.readings] == [1] and once.left_out == 1
    both = scores_of(run([*cells, cell(6, faster[1], 2)]))[0].rows[0]
    # The host was twice as fast in the second repeat, which no ratio shows.
    assert [one.value for one in both.efficiency.readings] == [pytest.approx(0.6)] * 2
    assert both.efficiency.spread is not None and both.efficiency.spread.half_width == pytest.approx(0.0)


def test_the_slowest_tile_is_named_where_it_is_always_the_same() -> None:
    cells = [cell(1, ALONE), cell(2, TWO), cell(3, ALONE, 2), cell(4, list(reversed(TWO)), 2)]
    assert {row.worst_tile for row in scores_of(run(cells))[0].rows} == {None}


def test_tiles_that_did_not_run_together_tell_no_knee() -> None:
    late = cell(2, TWO)
    workloads = [replace(one, began=15.0 if one.tile == 2 else 0.0) for one in late.workloads]
    late = replace(late, workloads=workloads, over_tiles=over_tiles(late.measurements, workloads, Directions()))
    cells = [cell(1, ALONE), late]
    (place,) = scores_of(run(cells))
    assert all(row.apart and row.together == 0.5 for row in place.rows)
    assert place.knee is not None and place.knee.decided is not None
    assert place.knee.decided.because == "the tiles did not run at the same time, so their rates do not add up"


def _many(repeats: int, carried: Mapping[int, float], draw: random.Random) -> list[CellDocument]:
    """Cells of so many tiles as `carried` has, which carry so much together, at 1 % of noise."""
    cells: list[CellDocument] = []
    for repeat in range(1, repeats + 1):
        for tiles, total in carried.items():
            rates = [total / tiles * draw.lognormvariate(0, 0.01) for _ in range(tiles)]
            figures = [{"web": 10 * rate, "mail": 10 / rate} for rate in rates]
            cells.append(cell(len(cells) + 1, figures, repeat))
    return cells


@pytest.mark.parametrize(
    ("repeats", "carried", "verdict", "tiles"),
    [
        (6, {1: 1, 2: 1.9, 3: 1.93}, KneeVerdict.REACHED, 2),
        (6, {1: 1, 2: 1.9, 3: 2.5}, KneeVerdict.NOT_REACHED, None),
        (3, {1: 1, 2: 1.9, 3: 1.93}, KneeVerdict.CANNOT_TELL, None),
        (1, {1: 1, 2: 1.9, 3: 2.5}, KneeVerdict.CANNOT_TELL, None),
    ],
)
def test_the_knee_of_a_run(repeats: int, carried: Mapping[int, float], verdict: KneeVerdict, tiles: int | None) -> None:
    (place,) = scores_of(run(_many(repeats, carried, random.Random(2))))
    assert place.knee is not None and (place.knee.verdict, place.knee.tiles) == (verdict, tiles)


def test_properties_of_any_rates() -> None:
    draw = random.Random(3)
    for _ in range(40):
        cells = [
            cell(tiles, [{"web": draw.uniform(1, 1e6), "mail": draw.uniform(1e-3, 1e3)} for _ in range(tiles)])
            for tiles in (1, 2, 3)
        ]
        # Another unit of one workload: kilobytes for bytes, or milliseconds for seconds.
        scaled = [
            cell(at, [{"web": one["web"] * 1e-3, "mail": one["mail"] * 1e3} for one in tiles])
            for at, tiles in enumerate((_figures(body) for body in cells), start=1)
        ]
        found, other = rows(scores_of(run(cells))[0]), rows(scores_of(run(scaled))[0])
        for key, row in found.items():
            same = other[key]
            for one, two in ((row.efficiency, same.efficiency), (row.gain, same.gain), (row.jain, same.jain)):
                assert value(one) == pytest.approx(value(two), rel=1e-9)
            assert 1 / row.tiles - 1e-12 <= value(row.jain) <= 1 + 1e-12
            assert 0 < value(row.worst) <= 100 + 1e-9 and row.worst_tile == same.worst_tile
        for name in ("web", "mail", None):
            gains = sum(value(found[name, tiles].gain) for tiles in (2, 3))
            assert 3 * value(found[name, 3].efficiency) == pytest.approx(1 + gains / 100)


def _figures(body: CellDocument) -> list[dict[str, float]]:
    tiles: dict[int, dict[str, float]] = {}
    for one in body.measurements:
        tiles.setdefault(one.tile, {})[one.workload] = cast(float, one.value)
    return list(tiles.values())


def test_tile_index_by_hand() -> None:
    reference = reference_of([cell(1, ALONE), cell(2, TWO)], METRICS)
    assert reference is not None and reference.tiles == 1
    # Twice as fast in one tile, half as fast in the other.
    measured = cell(3, [{"web": 20.0, "mail": 5.0}, {"web": 5.0, "mail": 20.0}])
    assert index_of(reference)(measured) == pytest.approx(2.5)
    # Twice as fast in one workload, half as fast in the other.
    assert index_of(reference)(cell(3, [{"web": 20.0, "mail": 20.0}])) == pytest.approx(1.0)
    assert index_of(reference)(cell(1, ALONE)) == pytest.approx(1.0)
    assert index_of(reference)(cell(3, [{"web": 20.0}])) is None, "a workload is missing"


def test_the_ratio_of_two_indices_does_not_depend_on_the_baseline() -> None:
    draw = random.Random(4)
    for _ in range(40):
        one, two, *bases = (
            cell(at, [{"web": draw.uniform(1, 99), "mail": draw.uniform(1, 99)} for _ in range(draw.randint(1, 3))])
            for at in range(5)
        )
        ratios = []
        for base in bases:
            reference = reference_of([base], METRICS)
            assert reference is not None
            ratios.append((index_of(reference)(one) or 0) / (index_of(reference)(two) or 1))
        assert ratios == [pytest.approx(ratios[0])] * 3


def test_a_run_time_is_only_compared_for_the_same_work() -> None:
    def asked(requests: int, mails: int) -> dict[str, Any]:
        return {
            "web": {"kind": "http", "params": {"requests": requests}},
            "mail": {"kind": "smtp", "params": {"messages": mails}},
        }

    reference = reference_of([cell(1, ALONE, workloads=asked(10, 10))], METRICS)
    assert reference is not None
    index = index_of(reference)
    assert index(cell(2, ALONE, workloads=asked(10, 10))) == pytest.approx(1.0)
    assert index(cell(2, ALONE, workloads=asked(20, 10))) == pytest.approx(1.0), "a rate is a rate"
    assert index(cell(2, ALONE, workloads=asked(10, 20))) is None


def test_a_comparison_has_the_index_of_each_side_in_tiles_of_the_baseline() -> None:
    half: Tiles = [{"web": 20.0, "mail": 5.0}] * 2
    one = Side.of("A", run([cell(1, ALONE), cell(2, TWO)]))
    two = Side.of("B", run([cell(1, ALONE, outcome="invalid"), cell(2, half)], "two"))
    compared = compare([one, two])
    found = {row.axes["tiles"]: row for row in compared.rows if row.metric == "tile_index"}
    assert [value(figure) for figure in found[2].figures] == [pytest.approx(1.2), pytest.approx(4.0)]
    assert found[2].differences[0].percent == pytest.approx(100 * (4 / 1.2 - 1))
    assert str(found[2].differences[0].verdict) == "one reading each" and found[2].differences[0].family == 1
    assert value(found[1].figures[0]) == pytest.approx(1.0)
    assert found[1].figures[1].spread is None, "an invalid cell has no index"
    body = jsonable(compared)["tile_index"]
    assert [(one["axes"]["tiles"], one["reference_tiles"], one["one_span"]) for one in body] == [
        (1, 1, True),
        (2, 1, True),
    ]
    assert {one["workload"]: one["metric"] for one in body[0]["reference"]} == METRICS


def test_one_workload_in_one_tile_needs_no_index() -> None:
    sides = [Side.of(name, run([cell(1, [{"web": 10.0}])], name)) for name in ("A", "B")]
    compared = compare(sides)
    assert compared.indexed == () and all(row.metric != "tile_index" for row in compared.rows)
