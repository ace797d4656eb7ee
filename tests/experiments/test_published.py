"""The second reading of the published figures keeps its form, and its README counts what is there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

PUBLISHED = Path(__file__).parent / "published"
FILES = sorted(PUBLISHED.glob("*.tsv"))
COLUMNS = ("row", "column", "value", "unit", "kind")
KINDS = ("measured", "relative", "text")
# A figure as publications print it: .996, 13.0k, 6,925, ~670, 5+, 3/4 or 115m25s, and nothing beside it.
FIGURE = re.compile(r"~?(\d[\d,]*(\.\d+)?|\.\d+)k?\+?|\d+/\d+|\d+m\d\ds")


def _lines(path: Path) -> list[tuple[str, ...]]:
    """The header and the figures of a file, without the comments at its beginning."""
    lines = path.read_text(encoding="utf-8").splitlines()
    while lines and lines[0].startswith("# "):
        del lines[0]
    return [tuple(line.split("\t")) for line in lines]


def _counted() -> dict[str, tuple[int, ...]]:
    """README's table: by file, and under `all`, the counts of all figures and of each kind."""
    readme = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `?([a-z-]+(?:\.tsv)?)`? \|((?: \d+ \|){4})$", readme, re.MULTILINE)
    return {name: tuple(int(count) for count in re.findall(r"\d+", counts)) for name, counts in rows}


def _counts(path: Path) -> tuple[int, ...]:
    kinds = Counter(line[4] for line in _lines(path)[1:])
    return (kinds.total(), *(kinds[kind] for kind in KINDS))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_line_is_one_figure_with_its_place(path: Path) -> None:
    header, *figures = _lines(path)
    assert header == COLUMNS
    assert figures
    for figure in figures:
        assert len(figure) == len(COLUMNS), figure
        assert all(cell and cell == cell.strip() for cell in figure), figure
        assert FIGURE.fullmatch(figure[2]), figure
        assert figure[4] in KINDS, figure


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_place_has_two_figures(path: Path) -> None:
    places = Counter((row, column, kind) for row, column, _, _, kind in _lines(path)[1:])
    assert not [place for place, times in places.items() if times > 1]


def test_the_readme_counts_every_file() -> None:
    counts = {path.name: _counts(path) for path in FILES}
    total = tuple(sum(column) for column in zip(*counts.values(), strict=True))
    assert _counted() == counts | {"all": total}
