"""How many tiles are carried, from runs with one tile more each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.cell_shape import BoundDocument
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.sample_size import readings_needed
from vmlab.analysis.tiles.tiles_carried import Carried, carried_of
from vmlab.model.jsonable import jsonable
from vmlab.report.run.tiles_text import Ascent, Stop, bar_text, brief, climb_of, scale_document, sentence, tiles_answer
from vmlab.store.reader import RunReader
from vmlab.workloads.target_limits import Target

TARGET = Target("web", "latency_p95", "s", 0.5, at_least=False, implied=False)
SAID = {"workloads": {"web": {"kind": "http"}}, "targets": {"web": {"latency_p95": "500 ms"}}}
IDLE: BoundDocument = BoundDocument(resource="none", where="", sentence="the CPUs were 30 % busy", evidence={})
DISK: BoundDocument = replace(IDLE, resource="disk", where="host", sentence="the disk was 99 % busy")
Latencies = Mapping[str, Sequence[float | None]]
"""For each cache mode the latency in each repeat; None for a cell that is invalid."""


def climbed(folder: Path, steps: Sequence[Latencies], bound: BoundDocument | None = IDLE) -> list[RunDocument]:
    """A run for each number of tiles from 1 on."""
    return [_run(folder / str(tiles), tiles, step, bound) for tiles, step in enumerate(steps, start=1)]


def _run(folder: Path, tiles: int, step: Latencies, bound: BoundDocument | None) -> RunDocument:
    story = Story(folder / "run.sqlite", run=f"run-{tiles}").begin({"tiles": [tiles], "cache": list(step)}, said=SAID)
    settings = {"tiles": tiles, "workloads": {"web": {"kind": "http", "params": {"requests": 60}}}}
    for repeat in range(max(map(len, step.values()))):
        for cache, latencies in reversed([*step.items()]):
            story.start_cell({"tiles": tiles, "cache": cache}, repeat + 1, settings=settings)
            story.execute(2.0)
            latency = latencies[repeat]
            for tile in range(1, tiles + 1):
                story.measure("web", latency or 0.1, "latency_p95", "s", tile)
            invalid = latency is None
            story.end_cell("invalid" if invalid else "passed", ["the host swapped"] if invalid else (), wall=2.0)
    with RunReader(story.end()) as reader:
        document = run_document(reader)
    return replace(document, cells=[replace(cell, bound_by=bound) for cell in document.cells])


def ascent(documents: Sequence[RunDocument], stop: Stop = Stop.KNEE, **more: Any) -> Ascent:
    places = tuple(carried_of(documents))
    return Ascent("load", "full", True, 64, (TARGET,), tuple(documents), places, stop, **more)


def only(documents: Sequence[RunDocument]) -> Carried:
    (place,) = carried_of(documents)
    return place


def test_each_cache_mode_carries_the_most_tiles_that_all_delivered(tmp_path: Path) -> None:
    none, writeback = carried_of(
        climbed(tmp_path, [{"none": [0.3], "writeback": [0.1]}, {"none": [0.6], "writeback": [0.5]}])
    )
    assert (none.label, none.tiles, none.at_least, none.climbing) == ("cache none", 1, False, False)
    assert (writeback.label, writeback.tiles, writeback.at_least, writeback.climbing) == (
        "cache writeback",
        2,
        True,
        True,
    )
    assert none.because == "one repeat, no spread known"


def test_repeats_end_each_for_itself_and_give_their_lower_median(tmp_path: Path) -> None:
    steps: list[Latencies] = [
        {"none": [0.1, 0.1, 0.1, 0.1]},
        {"none": [0.1, 0.9, 0.9, 0.1]},
        {"none": [0.9, 0.1, 0.1, 0.9]},
    ]
    place = only(climbed(tmp_path, steps))
    assert [climb.tiles for climb in place.climbs] == [2, 1, 1, 2], "what is delivered above a miss is no load carried"
    assert (place.tiles, place.range, place.interval) == (1, (1, 2), None)
    assert place.because == "too few repeats"
    assert [cell.repeat for cell in place.ended_by] == [2, 3]


def test_enough_repeats_give_an_interval(tmp_path: Path) -> None:
    repeats = readings_needed()
    steps: list[Latencies] = [
        {"none": [0.1] * repeats},
        {"none": [0.1] * (repeats - 1) + [0.9]},
        {"none": [0.9] * repeats},
    ]
    place = only(climbed(tmp_path, steps))
    assert (place.tiles, place.range, place.interval, place.because) == (2, (1, 2), (1, 2), "")
    assert "2 tiles with cache none (95 % interval 1 to 2, 6 repeats)" in sentence(
        ascent(climbed(tmp_path / "b", steps))
    )


def test_a_cell_that_is_not_to_be_believed_ends_its_repeat_and_no_other(tmp_path: Path) -> None:
    place = only(climbed(tmp_path, [{"none": [0.1, 0.1]}, {"none": [None, 0.1]}, {"none": [0.1, 0.9]}]))
    assert [(climb.tiles, str(climb.end)) for climb in place.climbs] == [(1, "unknown"), (2, "missed")]
    assert (place.tiles, place.range) == (2, (2, 2))
    alone = ascent(climbed(tmp_path / "b", [{"none": [0.1]}, {"none": [None]}]))
    assert alone.places[0].tiles is None
    assert sentence(alone) == (
        "this host carries at least 1 tile with cache none (cell 1 of its last run is invalid: the host swapped)"
    )


@pytest.mark.parametrize(
    ("bound", "first"),
    [
        (DISK, "the disk ran out first: "),
        (IDLE, "no resource of the host was at its limit: "),
        (None, "nothing tells what ran out first, as the host was not watched: "),
    ],
)
def test_the_sentence_names_what_ran_out_first_with_its_evidence(
    tmp_path: Path, bound: BoundDocument | None, first: str
) -> None:
    said = sentence(ascent(climbed(tmp_path, [{"none": [0.1]}, {"none": [0.6]}], bound)))
    missed = "with 2 tiles web.latency_p95 was 600.0 ms in tile 1 instead of at most 500 ms"
    assert said.startswith(
        f"this host carries 1 tile with cache none (one repeat, no spread known), where {first}{missed}"
    )
    assert bound is None or said.endswith(f", while {bound.sentence}")


def test_a_guard_names_what_a_further_tile_would_have_used_up(tmp_path: Path) -> None:
    told = ascent(
        climbed(tmp_path, [{"none": [0.1]}]), Stop.GUARD, because="with 2 tiles 6 guests need it", resource="memory"
    )
    assert sentence(told).endswith("where memory ran out first: with 2 tiles 6 guests need it")


def test_a_host_that_carries_not_even_one_tile_carries_none(tmp_path: Path) -> None:
    told = ascent(climbed(tmp_path, [{"none": [0.9]}]))
    assert told.places[0].tiles == 0
    assert sentence(told).startswith("this host carries no tile with cache none")


def test_the_document_has_every_step_with_its_run(tmp_path: Path) -> None:
    document = jsonable(scale_document(ascent(climbed(tmp_path, [{"none": [0.1]}, {"none": [0.6]}]))))
    (place,) = document["places"]
    steps = [(step["tiles"], step["run"], step["delivered"], step["missed"]) for step in place["steps"]]
    assert steps == [(1, "run-1", 1, 0), (2, "run-2", 0, 1)]
    assert place["steps"][1]["cells"][0]["nearest"]["value"] == 0.6
    assert place["ran_out"]["resource"] == "none"


def test_a_bar_has_its_limit_at_a_third_and_its_factor_behind_it() -> None:
    assert bar_text(0.0) == "[     |         ]  0.0x"
    assert bar_text(0.999) == "[==== |         ] 1.00x"
    assert bar_text(1.0) == "[=====|         ] 1.00x"
    assert bar_text(1.001) == "[=====|=        ] 1.00x"
    assert bar_text(2.2) == "[=====|=====    ]  2.2x"
    assert bar_text(3.0) == "[=====|=========]  3.0x"


def test_bars_beyond_their_end_are_marked_and_differ_by_their_factor() -> None:
    """4.39 of 2 s, 27.8 of 4 s and 53.4 of 10 s were drawn alike."""
    bars = [bar_text(value / limit) for value, limit in ((4.39, 2), (27.8, 4), (53.4, 10))]
    assert bars == ["[=====|====     ]  2.2x", "[=====|=======>>]  7.0x", "[=====|=======>>]  5.3x"]
    assert bar_text(float("inf")) == "[=====|=======>>] >999x"
    assert len({len(bar_text(load)) for load in (0.0, 0.95, 9.99, 99.9, 500.0, 1e9)}) == 1


def one_run(folder: Path, steps: Sequence[Latencies], bound: BoundDocument | None = DISK) -> RunDocument:
    """The cells of all steps as those of one run."""
    first, *others = climbed(folder, steps, bound)
    return replace(first, cells=[*first.cells, *(cell for other in others for cell in other.cells)])


def test_one_run_with_growing_tiles_tells_how_many_it_carries(tmp_path: Path) -> None:
    document = one_run(tmp_path, [{"none": [0.2], "writeback": [0.2]}, {"none": [0.9], "writeback": [0.3]}])
    climb = climb_of(document)
    assert climb is not None
    none, writeback = "1 tile with cache none (the disk ran out first)", "at least 2 tiles with cache writeback"
    assert brief(climb) == f"this host carries {none}, {writeback}"
    told = " ".join(" ".join(tiles_answer(document)).split())
    assert "1 tile with cache none (one repeat, no spread known), where the disk ran out first" in told
    assert "at least 2 tiles with cache writeback (one repeat, no spread known), the most that were tried" in told


def test_nothing_that_ran_out_is_not_named(tmp_path: Path) -> None:
    climb = climb_of(one_run(tmp_path, [{"none": [0.2]}, {"none": [0.9]}], IDLE))
    assert climb is not None and brief(climb) == "this host carries 1 tile with cache none"


def test_a_cell_that_does_not_count_leaves_the_number_unknown(tmp_path: Path) -> None:
    climb = climb_of(one_run(tmp_path, [{"none": [None]}, {"none": [0.9]}]))
    assert climb is not None and brief(climb) == "this host carries an unknown number of tiles with cache none"


def test_a_run_that_does_not_begin_with_one_tile_tells_nothing(tmp_path: Path) -> None:
    assert tiles_answer(climbed(tmp_path, [{"none": [0.2]}])[0]) == []
    two = one_run(tmp_path / "two", [{"none": [0.2]}, {"none": [0.2]}, {"none": [0.9]}])
    two = replace(two, cells=two.cells[1:])
    assert climb_of(two) is None
