"""Records of earlier versions whose cells had guests on two hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.retired import add_retired
from tests.store.stories import Story
from vmlab.analysis.document import compared_document, run_document
from vmlab.model.event import HalfEnded
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader


@pytest.mark.parametrize("before", [True, False])
def test_the_cell_has_its_figures_and_the_worse_outcome_of_both(tmp_path: Path, before: bool) -> None:
    """Whichever host said last how it went."""
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]})
    story.start_cell({"cache": "none"})
    story.execute(10.0)
    story.measure("web", 8.0)
    half = HalfEnded(**story.now(), cell=1, name="hv2", outcome="invalid", reasons=["no disk"])
    if before:
        story.writer.append(half)
    story.end_cell(wall=10.0)
    if not before:
        story.writer.append(half)
    store = story.end()
    joined = {"here": "hv1", "other": "hv2", "hosts": {"t1-users": "hv1", "t1-front": "hv2"}, "way": "ssh"}
    add_retired(store, "CellLinked", cell=1, mono=3.0, **joined)
    add_retired(store, "HalfReached", cell=1, mono=3.5, stage="ready")
    add_retired(store, "LinkMeasured", cell=1, mono=4.0, rounds=10, least_ms=1.0, median_ms=2.0, most_ms=3.0)
    with RunReader(store) as reader:
        documents = [run_document(reader), compared_document(reader)]
    for document in documents:
        (cell,) = document.cells
        assert (cell.outcome, cell.reasons, cell.linked) == ("invalid", ["host hv2: no disk"], None)
        assert [(one.workload, one.value) for one in cell.measurements] == [("web", 8.0)]
    assert "host hv2: no disk" in run_table(documents[0])
