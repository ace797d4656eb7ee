"""Runs in Go's benchmark format, a line a reading, as benchstat reads it.

The format is https://go.dev/design/14313-benchmark-format, with the ``Unit`` lines of golang.org/x/perf/benchfmt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO
from urllib.parse import quote

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.figures.over_tiles import unit_direction
from vmlab.analysis.figures.undelivered import undelivered_of, undelivered_words
from vmlab.analysis.shape import RunDocument
from vmlab.model.run import Outcome
from vmlab.model.visible import visible_line
from vmlab.report.exports.tidy import AXIS, RUN_COLUMNS, SIDE, Cell, Exported, labels_of, measured
from vmlab.report.exports.tidy_tables import cell_text

_CONFIGURATION = (SIDE, *(name for name in RUN_COLUMNS if name not in ("run", "started")))
"""Without what is another in each run: benchstat compares readings of one configuration."""
_IN_NAMES = ("workload", "metric", "tile", "guest")
_UNITS = {"s": ("ns", 1e9), "ms": ("ns", 1e6), "1": ("count", 1.0), "1/s": ("op/s", 1.0), "%": ("percent", 1.0)}
_BETTER: Mapping[frozenset[bool | None], str] = {frozenset((True,)): "higher", frozenset((False,)): "lower"}
"""What is said of a unit whose metrics all have the same better end."""


def write_benchstat(runs: Sequence[Exported], file: BinaryIO) -> None:
    """Write a line for each measurement that has a value, of cells that passed, count, and got what was set.

    Which run follows, and which cells are left out, stands in lines that begin with ``#``, which readers ignore.
    """
    ends: dict[str, set[bool | None]] = {}
    lines: list[str] = []
    shown = dict.fromkeys(_CONFIGURATION, "")
    for run in runs:
        document = run.document()
        lines += _remarks(document)
        for named, value, more in _counted(run, document):
            unit, factor = _unit(str(named["unit"]), more)
            ends.setdefault(unit, set()).add(more)
            for key in _CONFIGURATION:
                if (text := visible_line(cell_text(named.get(key)))) != shown[key]:
                    lines.append(f"{key}: {text}".rstrip())
                    shown[key] = text
            lines.append(f"{_name(named)} 1 {value * factor:.15g} {unit}")
    heads = [f"Unit {unit} better={_BETTER[end]}" for unit, of in ends.items() if (end := frozenset(of)) in _BETTER]
    file.writelines(f"{line}\n".encode() for line in heads + lines)


def _remarks(document: RunDocument) -> Iterator[str]:
    yield f"# run {visible_line(document.run.id)}, started {document.run.started or 'at a time that is not known'}"
    # No configuration: readings of runs that were noted or tagged differently would be in two tables.
    yield from (f"# {name}: {text}" for name, text in labels_of(document).items())
    for cell in document.cells:
        if not _is_counted(cell):
            why = "warm-up" if cell.warm_up else "loop" if cell.looped else visible_line(cell.outcome)
            yield f"# cell {cell.cell} is left out: {why}"
        elif words := undelivered_words(undelivered_of([cell])):
            yield f"# cell {cell.cell}: values are left out: not delivered: {visible_line(words)}"


def _is_counted(cell: CellDocument) -> bool:
    return cell.outcome == Outcome.PASSED and counts(cell)


def _counted(run: Exported, document: RunDocument) -> Iterator[tuple[dict[str, Cell], float, bool | None]]:
    """The rows that are written, by the names of their columns; their values, and whether more is better."""
    cells = {cell.cell for cell in document.cells if _is_counted(cell)}
    better = {(one.workload, one.metric): one.more_is_better for cell in document.cells for one in cell.over_tiles}
    for named in measured(run):
        is_right = named["cell"] in cells and named["undelivered"] is None
        if is_right and isinstance(value := named["value"], float | int):
            place = (str(named["workload"]), str(named["metric"]))
            yield named, value, better.get(place, unit_direction(str(named["unit"])))


def _unit(unit: str, more_is_better: bool | None) -> tuple[str, float]:
    """A unit in the format's words, and its factor. Readers know that less of ``ns/op`` is better."""
    name, factor = _UNITS.get(unit) or (_quoted(unit, "/") or "count", 1.0)
    return (f"{name}/op" if name == "ns" and more_is_better is False else name), factor


def _name(named: Mapping[str, Cell]) -> str:
    """``BenchmarkWeb/metric=run_time/cache=none/tile=1``; of no workload ``Benchmark/metric=wall_seconds/cache=none``.

    The first letter is a capital, as the format demands; names of workloads begin with a small one.
    """
    workload = str(named["workload"] or "")
    is_base = "a" <= workload[:1] <= "z"
    axes = {name.removeprefix(AXIS): value for name, value in named.items() if name.startswith(AXIS)}
    parts = {
        "workload": None if is_base else named["workload"],
        "metric": named["metric"],
        **{_axis_key(name): value for name, value in axes.items()},
        "tile": named["tile"],
        "guest": None if workload else named["guest"],
    }
    base = _value(workload[0].upper() + workload[1:]) if is_base else ""
    shown = (f"/{_quoted(name)}={_value(cell_text(value))}" for name, value in parts.items() if value is not None)
    return f"Benchmark{base}{''.join(shown)}"


def _axis_key(name: str) -> str:
    return f"{AXIS}{name}" if name in _IN_NAMES or name.startswith(AXIS) else name


def _value(text: str) -> str:
    """A value in a name, in which a last ``-4`` would be read as GOMAXPROCS."""
    return re.sub(r"-(?=[0-9]+\Z)", "%2D", _quoted(text, "="))


def _quoted(text: str, besides: str = "") -> str:
    """Text as part of a name, or as a unit: letters, digits and harmless signs, all others as ``%20``."""
    return re.sub(rf"[^\w.,:+{besides}@-]", lambda found: quote(found[0], safe="", errors="surrogatepass"), text)
