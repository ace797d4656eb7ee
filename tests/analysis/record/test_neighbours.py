"""What the host's own guests took of a cell: in documents, texts, exports and comparisons, and not in older records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.meetings import Side
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.cell_event import NeighboursCounted
from vmlab.model.event_json import from_json, to_json
from vmlab.model.jsonable import jsonable
from vmlab.model.results import NeighbourUse
from vmlab.report.comparison_text import comparison_table
from vmlab.report.exports.tidy import Exported, measurements
from vmlab.report.run.cell_text import cell_text
from vmlab.store.reader import RunReader
from vmlab.telemetry.domains.neighbours import mean_uses, took_words

DB = NeighbourUse("db", 34.2, 3.0 * 2**20)
IDLE = NeighbourUse("idle", 0.3, 512.0)
TOOK = "CPUs db 34 %; disks db 3 MiB/s"


def told(folder: Path, *cells: tuple[NeighbourUse, ...] | None, outcomes: tuple[str, ...] = ()) -> Path:
    """A run with a repeat for each of `cells`; nobody counted in those that are None, as in older records."""
    story = Story(folder / "run.sqlite", run=folder.name).begin({"cache": ["none"]})
    for repeat, uses in enumerate(cells, 1):
        number = story.start_cell({"cache": "none"}, repeat)
        story.execute(2.0)
        story.measure("web", 2.0)
        if uses is not None:
            event = NeighboursCounted(**story.now(), cell=number, neighbours=list(uses))
            story.writer.append(event)
        story.end_cell(outcomes[repeat - 1] if outcomes else "passed", wall=2.0)
    return story.end()


def document(store: Path) -> RunDocument:
    with RunReader(store) as reader:
        return run_document(reader)


def compared(*stores: Path) -> Comparison:
    documents = []
    for store in stores:
        with RunReader(store) as reader:
            documents.append(compared_document(reader))
    return compare([Side.of(one.run.id, one) for one in documents])


def the_cell(store: Path) -> tuple[RunDocument, CellDocument]:
    known = document(store)
    (cell,) = known.cells
    return known, cell


def test_a_cell_has_what_each_took_and_says_so(tmp_path: Path) -> None:
    known, cell = the_cell(told(tmp_path, (DB, IDLE)))
    assert jsonable(cell.neighbours) == [
        {"name": "db", "cpu_percent": 34.2, "disk_bytes_per_second": 3.0 * 2**20},
        {"name": "idle", "cpu_percent": 0.3, "disk_bytes_per_second": 512.0},
    ]
    assert f"\nguests of this host took: {TOOK}\n" in cell_text(known, cell)


@pytest.mark.parametrize(("uses", "kept"), [((), []), (None, None)])
def test_a_host_without_guests_and_an_older_record_say_nothing(
    tmp_path: Path, uses: tuple[NeighbourUse, ...] | None, kept: object
) -> None:
    known, cell = the_cell(told(tmp_path, uses))
    assert cell.neighbours == kept
    assert "guests of this host" not in cell_text(known, cell).lower()


def test_exports_have_a_row_for_each_figure(tmp_path: Path) -> None:
    with RunReader(told(tmp_path, (DB,))) as reader:
        tidy = measurements(Exported(reader))
        rows = [dict(zip(tidy.columns, row, strict=True)) for row in tidy.rows]
    found = {row["metric"]: (row["guest"], row["tile"], row["unit"], row["value"]) for row in rows}
    assert found["neighbour_cpu_percent"] == ("db", None, "%", 34.2)
    assert found["neighbour_disk_bytes_per_second"] == ("db", None, "B/s", 3.0 * 2**20)


def test_a_comparison_has_them_side_by_side(tmp_path: Path) -> None:
    calm, loud = told(tmp_path / "calm", (IDLE,)), told(tmp_path / "loud", (DB, IDLE), (IDLE,))
    comparison = compared(calm, loud)
    text = " ".join(comparison_table(comparison).split())
    assert "guests of this host took on average, in the cells of calm: little" in text
    assert "guests of this host took on average, in the cells of loud: CPUs db 17 %; disks db 1.5 MiB/s" in text
    sides = jsonable(comparison)["neighbours"]
    assert [one["side"] for one in sides] == ["calm", "loud"]
    assert [[use["name"] for use in one["neighbours"]] for one in sides] == [["idle"], ["db", "idle"]]
    assert sides[1]["neighbours"][0]["cpu_percent"] == pytest.approx(17.1)


def test_cells_that_do_not_count_and_those_of_older_records_are_left_out(tmp_path: Path) -> None:
    old = told(tmp_path / "old", None)
    mixed = told(
        tmp_path / "mixed", (DB,), None, (NeighbourUse("web", 90.0, 0.0),), outcomes=("passed", "passed", "invalid")
    )
    comparison = compared(old, mixed)
    assert comparison.neighbours == (None, (DB,))
    assert "in the cells of old: not known" in " ".join(comparison_table(comparison).split())


def test_quiet_sides_need_no_word(tmp_path: Path) -> None:
    text = comparison_table(compared(told(tmp_path / "a", (IDLE,)), told(tmp_path / "b", None)))
    assert "guests of this host" not in text


def test_means_are_over_all_cells_and_guests_of_one_name_are_one() -> None:
    again = NeighbourUse("db", 1.8, 0.0)
    assert mean_uses([[DB, again], [IDLE]]) == (
        NeighbourUse("db", 18.0, 1.5 * 2**20),
        NeighbourUse("idle", 0.15, 256.0),
    )


def test_of_many_the_first_three_are_named() -> None:
    many = [NeighbourUse(f"g{place}", 9.0 - place, place * 2.0**21) for place in range(5)]
    assert took_words(many) == ("CPUs g0 9 %, g1 8 %, g2 7 %, 2 more; disks g4 8 MiB/s, g3 6 MiB/s, g2 4 MiB/s, 1 more")
    assert (took_words([IDLE]), took_words([])) == ("little", "nothing")


@pytest.mark.parametrize("change", [{"cpu_percent": "much"}, {"name": 3}, {"disk_bytes_per_second": float("nan")}])
def test_a_damaged_count_is_refused(change: dict[str, Any]) -> None:
    counted = NeighboursCounted(cell=1, neighbours=[DB])
    whole = to_json(counted)
    assert from_json(whole) == counted
    spoilt = {**json.loads(whole), "neighbours": [{**jsonable(DB), **change}]}
    with pytest.raises(ValueError, match="NeighboursCounted: neighbours cannot be"):
        from_json(json.dumps(spoilt))
    with pytest.raises(ValueError, match="NeighboursCounted: neighbours cannot be"):
        from_json(json.dumps({**spoilt, "neighbours": [{"name": "db"}]}))
