"""A difference is the same wherever it is printed: in the table of a run and in a comparison of the same cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.analysis.told import told
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.report.comparison_text import comparison_table
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

NOISE = (0.02, -0.05, 0.07, -0.01, 0.03, -0.06, 0.01, -0.03)
BASELINE = {
    "same": [10 * (1 + noise) for noise in NOISE],
    "faster": [10 + 0.1 * noise for noise in NOISE],
    "at-once": [0.0] * 8,
}
CANDIDATE = {
    "same": [10 * (1 - 2 * noise) for noise in NOISE],
    "faster": [5 + 0.1 * noise for noise in reversed(NOISE)],
    "at-once": [1.0] * 8,
}
EXPECTED = {
    "same": "~ +0.7 % (-13.0 to +15.8)",
    "faster": "-50.0 % (-50.1 to -49.9)",
    "at-once": "-",
    "total wall clock": "~ -0.3 % (-13.0 to +10.1)",
}


def _run(path: Path, columns: str = "cache", rows: str = "workloads") -> RunDocument:
    table = {"columns": columns, "rows": rows, "baseline": "none"}
    store = told(path / "run.sqlite", {"none": BASELINE, "writeback": CANDIDATE}, table)
    with RunReader(store) as reader:
        return run_document(reader)


def _last_words(text: str, labels: Sequence[str]) -> dict[str, str]:
    """What ends the row of each label; its columns are two blanks apart."""
    rows = ([part.strip() for part in line.split("  ") if part] for line in text.splitlines())
    found = {row[0].removesuffix(" (s)"): row[-1] for row in rows if row}
    return {label: found[label] for label in labels}


def test_show_and_compare_print_the_same_difference_for_the_same_cells(tmp_path: Path) -> None:
    document = _run(tmp_path)
    compared = comparison_table(compare(sides_by_axis(document)))
    assert _last_words(run_table(document), list(EXPECTED)) == EXPECTED
    assert _last_words(compared, list(EXPECTED)) == EXPECTED


def test_both_say_what_the_marks_mean(tmp_path: Path) -> None:
    document = _run(tmp_path)
    for text in (run_table(document), comparison_table(compare(sides_by_axis(document)))):
        words = " ".join(text.split())
        assert "~: no difference proven; repeats that one as large as seen takes: same more than 1000, " in words
        assert (
            "in brackets: interval of the difference, at 95 % confidence at least, by Wilcoxon signed rank, "
            "corrected for 4 metrics by Holm"
        ) in words


def test_a_table_by_another_axis_has_the_same_differences_the_same_way_round(tmp_path: Path) -> None:
    tables = run_table(_run(tmp_path, rows="tiles")).split(", run time (s)\n")
    found = {before.splitlines()[-1]: _last_words(table, ["1"])["1"] for before, table in pairwise(tables)}
    assert found == {name: text for name, text in EXPECTED.items() if name != "total wall clock"}


@pytest.mark.parametrize(
    ("repeats", "note"),
    [
        (
            1,
            "?: one measurement each, no spread known; "
            "to prove a difference in one of 4 metrics takes 8 repeats at least",
        ),
        (7, "?: too few measurements: 7 repeats; to prove a difference in one of 4 metrics takes 8 repeats at least"),
    ],
)
def test_too_few_readings_are_marked_and_have_no_interval(repeats: int, note: str, tmp_path: Path) -> None:
    sides = [{name: values[:repeats] for name, values in side.items()} for side in (BASELINE, CANDIDATE)]
    store = told(tmp_path / "run.sqlite", dict(zip(("none", "writeback"), sides, strict=True)))
    with RunReader(store) as reader:
        document = run_document(reader)
    for text in (run_table(document), comparison_table(compare(sides_by_axis(document)))):
        assert _last_words(text, ["faster"])["faster"] == "? -50.0 %"
        assert note in " ".join(text.split())
