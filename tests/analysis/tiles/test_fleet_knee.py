"""How many tiles a fleet carries: by the targets of the worst host, and by the sums of all hosts' rates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.knee import KneeVerdict
from vmlab.analysis.tiles.over_hosts import cells_of_all_hosts
from vmlab.analysis.tiles.scores import scores_of
from vmlab.analysis.tiles.target_results import delivered
from vmlab.analysis.tiles.tiles_carried import carried_of
from vmlab.model.event import (
    CellPlaced,
    HostJoined,
    TogetherEnded,
)
from vmlab.model.run import AxisValue
from vmlab.report.run.tiles_text import Ascent, Stop, brief, scale_document, sentence
from vmlab.store.reader import RunReader

HOSTS = ("hv1", "hv2")
SAID = {"workloads": {"web": {"kind": "http"}}, "targets": {"web": {"latency_p95": "500 ms"}}}
Latency = Callable[[str, int], float | None]
Rate = Callable[[str, int, int], float]
SLOWER = {"hv1": 0.1, "hv2": 0.2}


def _run(
    folder: Path,
    tiles: tuple[int, ...],
    latency: Latency,
    rate: Rate = lambda host, count, repeat: 100.0,
    repeats: int = 1,
    outcome: str = "passed",
) -> RunDocument:
    """A run of all hosts together, with these numbers of tiles on each."""
    axes: dict[str, list[AxisValue]] = {"host": list(HOSTS), "tiles": list(tiles)}
    story = Story(folder / "run.sqlite", run=f"run-{tiles[-1]}").begin(axes, said=SAID)
    for name in HOSTS:
        joined = HostJoined(name=name, run=name, accelerator="tcg", facts={}, offset_ms=0.0, uncertainty_ms=0.1)
        story.writer.append(joined)
    settings = {"workloads": {"web": {"kind": "http", "params": {"requests": 60}}}}
    for repeat in range(1, repeats + 1):
        for count in tiles:
            numbers = []
            for host in HOSTS:
                story.writer.append(CellPlaced(**story.now(), cell=story.cells + 1, name=host))
                own = {**settings, "tiles": count}
                numbers.append(story.start_cell({"host": host, "tiles": count}, repeat, settings=own))
                for tile in range(1, count + 1):
                    story.ran("web", tile, 0.0, 20.0)
                    value = latency(host, count)
                    if value is not None:
                        story.measure("web", value, "latency_p95", "s", tile)
                    story.measure("web", rate(host, count, repeat) / count, "requests_per_second", "1/s", tile)
                story.end_cell("passed", (), wall=20.0)
            story.writer.append(
                TogetherEnded(cells=numbers, outcome=outcome, skew_ms=3.0, skew_uncertainty_ms=0.5, mono=story.mono)
            )
    with RunReader(story.end()) as reader:
        return run_document(reader)


def _climbed(folder: Path, most: int, latency: Latency) -> list[RunDocument]:
    return [_run(folder / str(tiles), (tiles,), latency) for tiles in range(1, most + 1)]


def test_a_fleet_carries_what_its_worst_host_does(tmp_path: Path) -> None:
    documents = _climbed(tmp_path, 6, lambda host, tiles: SLOWER[host] * tiles)
    places = carried_of(documents)
    assert [(place.axes["host"], place.tiles, place.at_least) for place in places] == [
        ("all", 2, False),
        ("hv1", 5, False),
        ("hv2", 2, False),
    ]
    assert not any(place.climbing for place in places)
    ascent = Ascent("load", "full", True, 64, (), tuple(documents), tuple(places), Stop.KNEE)
    assert sentence(ascent).startswith("the fleet carries 2 tiles on every host at once (one repeat")
    assert "; and 5 tiles on hv1 (" in sentence(ascent)
    assert "600.0 ms in tile 1" in sentence(ascent).partition("; and ")[0], "the target of the worst host"
    assert brief(ascent) == "the fleet carries 2 tiles on every host at once, 5 tiles on hv1, 2 tiles on hv2"


def test_a_climb_over_a_fleet_as_json(tmp_path: Path) -> None:
    """All hosts together are a place as any other, with the run of each of its steps."""
    documents = _climbed(tmp_path, 2, lambda _host, _tiles: 0.1)
    ascent = Ascent("load", "full", False, 2, (), tuple(documents), tuple(carried_of(documents)), Stop.MOST_TILES)
    document = scale_document(ascent)
    assert document["scale"]["stopped_by"] == "max tiles"
    assert document["scale"]["sentence"].startswith("the fleet carries at least 2 tiles on every host at once")
    places = {place["axes"]["host"]: place for place in document["places"]}
    assert {name: place["tiles"] for name, place in places.items()} == {"all": 2, "hv1": 2, "hv2": 2}
    for place in places.values():
        assert [(step["tiles"], step["run"], step["delivered"]) for step in place["steps"]] == [
            (1, "run-1", 1),
            (2, "run-2", 1),
        ]


def test_each_host_climbs_to_its_own_end(tmp_path: Path) -> None:
    """With three tiles one host has missed, and the climb goes on for the other."""
    places = carried_of(_climbed(tmp_path, 3, lambda host, tiles: SLOWER[host] * tiles))
    assert {str(place.axes["host"]): place.climbing for place in places} == {"all": False, "hv1": True, "hv2": False}


@pytest.mark.parametrize(
    ("latencies", "met"),
    [
        ({"hv1": 0.1, "hv2": 0.2}, True),
        ({"hv1": 0.1, "hv2": 0.6}, False),
        ({"hv1": 0.6, "hv2": None}, False),
        ({"hv1": 0.1, "hv2": None}, None),
    ],
)
def test_a_target_is_met_only_if_the_worst_host_met_it(
    tmp_path: Path, latencies: dict[str, float | None], met: bool | None
) -> None:
    document = _run(tmp_path, (1,), lambda host, tiles: latencies[host])
    (whole,) = cells_of_all_hosts(document)
    assert [target.met for target in whole.targets if target.metric == "latency_p95"] == [met]
    assert delivered(whole) is met


def test_hosts_that_started_too_far_apart_tell_nothing_of_targets(tmp_path: Path) -> None:
    document = _run(tmp_path, (1,), lambda host, tiles: 0.1, outcome="invalid")
    (whole,) = cells_of_all_hosts(document)
    assert delivered(whole) is None


def test_the_knee_of_throughput_is_that_of_the_sums_and_that_of_each_host(tmp_path: Path) -> None:
    """hv1 gains nothing by a second tile, hv2 still by the third: what both do together grows by half as much."""
    gained = {"hv1": (100.0, 100.0, 100.0), "hv2": (100.0, 200.0, 300.0)}
    document = _run(
        tmp_path,
        (1, 2, 3),
        lambda host, tiles: 0.1,
        lambda host, tiles, repeat: gained[host][tiles - 1] * (1 + repeat / 100),
        repeats=8,
    )
    places = {str(place.axes["host"]): place for place in scores_of(document)}
    assert list(places) == ["all", "hv1", "hv2"]
    (row,) = [row for row in places["all"].rows if row.tiles == 3 and row.workload == "web"]
    assert row.gain.spread is not None and row.gain.spread.mean == pytest.approx(50.0)
    assert row.efficiency.spread is not None and row.efficiency.spread.mean == pytest.approx(400 / 600)
    verdicts = {name: place.knee.verdict for name, place in places.items() if place.knee is not None}
    assert verdicts == {"all": KneeVerdict.NOT_REACHED, "hv1": KneeVerdict.REACHED, "hv2": KneeVerdict.NOT_REACHED}
    assert places["hv1"].knee is not None and places["hv1"].knee.tiles == 1
