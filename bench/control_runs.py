"""What control runs show as measured and at the CPUs' best speed (``python -m bench.control_runs``).

    python -m bench.control_runs --runs 10 --kept FILE [--slow 15] [--guest front] [--used 100]

Runs the tile at size smoke with eight repeats, one run after the other, until FILE names so many. FILE has the ids
alone, and figures are read from the runs' records; asked again, only runs that are missing are made.

Each run has three sides: `base`, `same`, which is configured alike, and `slow`, whose guest has a CPU quota of
``--used`` / (1 + ``--slow`` / 100) percent. That makes longer by ``--slow`` what is bound by that virtual CPU alone,
where the guest uses so much of a CPU without the quota. The difference as measured says how much it was.

For `same` and for `slow` against `base`: by figure half of the interval's width, and whether a difference is proven;
for `same` the share of all relabellings, in which whole repeats swap their sides, that alarm. Then the spread of each
workload's times over all cells of `base` and `same`, as measured and corrected, and the power of the speed that they
follow: -1 is time inverse to speed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.alarms import quota, started
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Row
from vmlab.analysis.comparison.difference import Difference, Sides, differences
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure, OneReading
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.speed_spans import at_best_speed
from vmlab.analysis.statistics.descriptive import spread
from vmlab.model.places import runs_folder
from vmlab.model.run import RUN_TIME
from vmlab.store.reader import RunReader

TILE = Path(__file__).parent.parent / "scenarios" / "tile.yaml"
SAME, SLOW = CANDIDATES = ("same", "slow")


def three_sides(guest: str, percent: float, used: float) -> str:
    """The tile with the sides `base`, `same` and `slow`, whose `guest` has a quota."""
    slow = f"{{guests.{guest}.cpu_quota: {quota(percent) * used / 100:.4g}}}"
    # Two sides that set nothing are refused; this one sets what the guest has.
    same = f"{{guests.{guest}.vcpus: 1}}"
    sides = f"  cache: [none]\n  side: {{points: {{base: {{}}, same: {same}, slow: {slow}}}}}\n"
    text = TILE.read_text(encoding="utf-8").replace("  cache: [none, writeback]\n", sides)
    text = text.replace("table: {columns: cache, rows: workloads, baseline: none}\n", "")
    # In random order within each block, so that no side is always the first.
    text = text.replace("    order: as written\n", "")
    head, _, _ = text.partition("\nreference:\n")
    return head.replace("# yaml-language-server: $schema=schema.json\n", "") + "\n"


def rows_of(document: RunDocument, candidate: str) -> list[Row]:
    """The times of the side `candidate` against `base`, as a run of these two alone would have them."""
    sides = [side for side in sides_by_axis(document) if side.label.split()[-1] in ("base", candidate)]
    return [row for row in compare(sides).rows if row.metric in (RUN_TIME, WALL_SECONDS)]


def _document(run: str) -> RunDocument:
    with RunReader(runs_folder() / run / "run.sqlite") as reader:
        return run_document(reader)


def _half_width(found: Difference | None) -> float:
    return math.nan if found is None or found.interval is None else (found.interval[1] - found.interval[0]) / 2


def _figure(values: Sequence[float]) -> Figure:
    return Figure("passed", spread(values), 0, tuple(OneReading(one, repeat) for repeat, one in enumerate(values, 1)))


def alarms(family: Sequence[Sequence[Figure]]) -> float:
    """The share of all relabellings in which any figure of a family alarms; in each, whole repeats swap their sides."""
    pairs = [list(zip(*([one.value for one in side.readings] for side in sides), strict=True)) for sides in family]
    count, found = len(pairs[0]), 0
    # To swap all repeats but these is the same comparison from the other side.
    for swapped in range(2 ** (count - 1)):
        mixed = [[(b, a) if swapped >> place & 1 else (a, b) for place, (a, b) in enumerate(one)] for one in pairs]
        sides = [Sides(_figure([a for a, _ in one]), _figure([b for _, b in one]), False) for one in mixed]
        found += any(one.proven for one in differences(sides))
    return found / float(2 ** (count - 1))


def run_lines(document: RunDocument) -> Iterator[str]:
    """What one run shows."""
    speed = document.run.speed
    words = "not traced" if speed is None else f"{speed.mean_percent:.0f} % ({speed.lowest_percent:.0f} % at least)"
    yield f"{document.run.id}: {len(document.cells)} cells, speed {words}"
    for candidate in CANDIDATES:
        for row in rows_of(document, candidate):
            (raw,), (steady,) = row.differences, row.differences_at_best
            corrected = "" if steady is None else f"; at best speed ±{_half_width(steady):.1f} %, {steady.verdict}"
            measured = f"{raw.percent:+.1f} %, ±{_half_width(raw):.1f} %, {raw.verdict}"
            yield f"  {candidate}, {row.workload}: {measured}{corrected}"
    rows = rows_of(document, SAME)
    shares = [("as measured", [row.figures for row in rows])]
    if any(row.at_best_speed for row in rows):
        # What is not corrected is in the family as it was measured.
        shares.append(("at best speed", [(row.at_best_speed or row).figures for row in rows]))
    words = ", ".join(f"{100 * alarms(family):.1f} % {name}" for name, family in shares)
    yield f"  relabellings that alarm: {words}"


def _power(times: Sequence[float], speeds: Sequence[float]) -> float:
    logs = [math.log(one) for one in speeds]
    return statistics.linear_regression(logs, [math.log(one) for one in times]).slope if len({*logs}) > 1 else math.nan


def kind_lines(documents: Sequence[RunDocument]) -> Iterator[str]:
    """How each workload's times follow the speed over all cells of all runs."""
    cells = [
        cell
        for one in documents
        for cell in one.cells
        if cell.outcome == "passed" and not cell.warm_up and cell.axes["side"] != SLOW
    ]
    for name in dict.fromkeys(one.workload for cell in cells for one in cell.workloads):
        found = list(_times(cells, name))
        if len(found) < 3:
            continue
        times, speeds, corrected = zip(*found, strict=True)
        raw, steady = (100 * statistics.stdev(one) / statistics.fmean(one) for one in (times, corrected))
        yield (
            f"{name}: spread of {len(times)} times {raw:.1f} %, corrected {steady:.1f} %; CPUs at "
            f"{min(speeds):.0f} to {max(speeds):.0f} %; times as speed to the power of {_power(times, speeds):+.2f}"
        )


def _times(cells: Sequence[CellDocument], workload: str) -> Iterator[tuple[float, float, float]]:
    """Run time, speed in percent, and run time at the best speed, of each cell that has all."""
    value = at_best_speed(workload, RUN_TIME, "s")
    assert value is not None
    for cell in cells:
        at_best = value(cell)
        taken = [o.mean for o in cell.over_tiles if (o.workload, o.metric) == (workload, RUN_TIME)]
        if at_best is not None and taken:
            yield taken[0], 100 * at_best / taken[0], at_best


def summary_lines(documents: Sequence[RunDocument], candidate: str) -> Iterator[str]:
    """Medians over all figures of all runs, and in how many runs anything is proven."""
    every = [rows_of(document, candidate) for document in documents]
    rows = [row for one in every for row in one]
    for name, of in (("as measured", _measured(rows)), ("at best speed", _steady(rows))):
        if of:
            widths = [_half_width(one) for one in of.values()]
            median = statistics.median(widths)
            yield f"{candidate}, {name}: median half-width ±{median:.1f} % of {len(widths)} intervals"
    both = _steady(rows)
    if both:
        ratio = [_half_width(steady) / _half_width(_measured(rows)[place]) for place, steady in both.items()]
        yield f"{candidate}: half-width at best speed over that as measured: median {statistics.median(ratio):.2f}"
    for name, chosen in (("as measured", "differences"), ("at best speed", "differences_at_best")):
        proven = sum(
            any(one is not None and one.proven for row in each for one in getattr(row, chosen)) for each in every
        )
        yield f"{candidate}: runs in which a difference is proven {name}: {proven} of {len(every)}"


def _measured(rows: Sequence[Row]) -> dict[int, Difference]:
    return {place: row.differences[0] for place, row in enumerate(rows) if row.differences[0].interval is not None}


def _steady(rows: Sequence[Row]) -> dict[int, Difference]:
    found = {place: row.differences_at_best[0] for place, row in enumerate(rows)}
    return {place: one for place, one in found.items() if one is not None and one.interval is not None}


def main() -> None:
    """Make the runs that are missing, and print what all of them show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="how many runs there are to be")
    parser.add_argument("--kept", type=Path, required=True, help="the file with the ids of the runs")
    parser.add_argument("--slow", type=float, default=15.0, metavar="PERCENT", help="how much slower one side is")
    parser.add_argument("--guest", default="front", help="the guest that is slowed")
    parser.add_argument("--used", type=float, default=100.0, metavar="PERCENT", help="of a CPU, without the quota")
    parser.add_argument("--steady", metavar="SECONDS", help="each cell waits so long for a steady speed")
    asked = parser.parse_args()
    kept: list[str] = json.loads(asked.kept.read_text()) if asked.kept.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "control.yaml"
        scenario.write_text(three_sides(asked.guest, asked.slow, asked.used), encoding="utf-8")
        options = ["--steady", asked.steady] if asked.steady else []
        for _ in range(asked.runs - len(kept)):
            kept.append(started(scenario, "--size", "smoke", *options))
            asked.kept.write_text(json.dumps(kept, indent=1) + "\n")
    documents = [_document(run) for run in kept[: asked.runs]]
    lines = [line for document in documents for line in run_lines(document)]
    summaries = [line for candidate in CANDIDATES for line in summary_lines(documents, candidate)]
    print("\n".join([*lines, *kind_lines(documents), *summaries]))


if __name__ == "__main__":
    main()
