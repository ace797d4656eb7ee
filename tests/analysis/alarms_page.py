"""The table of docs/evidence/statistics.md on real comparisons that alarmed, from the readings of ``bench.alarms``.

``python -m tests.analysis.alarms_page`` writes it again. Alarms are counted anew from the readings, by the test as it
is now; what the lab said of each run when it ended is kept beside them.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from bench.alarms import KEPT, SLOWED, SLOWER
from vmlab.analysis.comparison.difference import Difference, Sides, Verdict, differences
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.statistics.descriptive import spread
from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.statistics.sample_size import ALPHA

PAGE = KEPT.with_name("statistics.md")
TRIES = 10_000
_PLACE = re.compile(r"(<!-- table: alarms -->\n).*?(<!-- end -->)", re.DOTALL)

Readings = Mapping[str, Mapping[str, Sequence[float]]]
"""Seconds by figure and side, one for each repeat."""
Blocks = Sequence[Sequence[tuple[float, float]]]
"""By figure the pairs of both sides, one for each repeat."""


def kept() -> dict[str, Any]:
    """What the last measurement left."""
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def blocks(figures: Readings, baseline: str, candidate: str) -> list[list[tuple[float, float]]]:
    """The pairs of two sides, by figure."""
    return [list(zip(by_side[baseline], by_side[candidate], strict=True)) for by_side in figures.values()]


def family(pairs: Blocks) -> list[Difference]:
    """The differences of all figures, corrected together."""
    return differences([Sides(_figure([a for a, _ in one]), _figure([b for _, b in one]), False) for one in pairs])


def _figure(values: Sequence[float], side: str = "") -> Figure:
    """Repeats of one run, or with a `side` as many runs of it, which are not paired."""
    readings = tuple(
        OneReading(value, repeat, f"{side}{repeat}" if side else "") for repeat, value in enumerate(values, 1)
    )
    return Figure("passed", spread(values), 0, readings)


def _unpaired(pairs: Blocks) -> list[Difference]:
    """As `family`, as if the readings had not been taken in blocks."""
    sides = [(_figure([a for a, _ in one], "a"), _figure([b for _, b in one], "b")) for one in pairs]
    return differences([Sides(before, after, False) for before, after in sides])


def _width(interval: Sequence[float] | None) -> float:
    return math.nan if interval is None else interval[1] - interval[0]


def widths_by_blocks(found: Mapping[str, Any]) -> list[float]:
    """How wide each interval of like with like is, over that of the same readings without their blocks."""
    ratios = []
    for _, figures, *sides in control_sides(found):
        pairs = blocks(figures, *sides)
        both = zip(family(pairs), _unpaired(pairs), strict=True)
        ratios += [_width(paired.interval) / _width(apart.interval) for paired, apart in both]
    return [ratio for ratio in ratios if not math.isnan(ratio)]


def widths_without_yardstick(found: Mapping[str, Any]) -> list[float]:
    """How wide an interval was with the readings around its cell taken out, over the interval as it was measured."""
    runs = (*found["earlier"]["controls"], *found["controls"])
    said = [one for run in runs for one in run["differences"]["side B"].values()]
    return [
        _width(one["without_yardstick"]["interval_percent"]) / _width(one["difference"]["interval_percent"])
        for one in said
        if "without_yardstick" in one
    ]


def control_sides(found: Mapping[str, Any]) -> Iterator[tuple[str, Readings, str, str]]:
    """Run, readings, and the two sides that do not differ, of each comparison of like with like."""
    earlier = found["earlier"]
    for run in (*earlier["controls"], *found["controls"]):
        yield run["run"], run["figures"], "side A", "side B"
    for run in earlier["slowed"]:
        yield run["run"], run["figures"], "side base", "side same"


def pooled(found: Mapping[str, Any], repeats: int) -> list[list[list[tuple[float, float]]]]:
    """The blocks of all A/A comparisons, in groups of so many repeats; the rest is not used."""
    every = [blocks(figures, *sides) for _, figures, *sides in control_sides(found)]
    figures = [[pair for one in every for pair in one[place]] for place in range(len(every[0]))]
    ends = range(repeats, len(figures[0]) + 1, repeats)
    return [[pairs[end - repeats : end] for pairs in figures] for end in ends]


@cache
def relabelled(repeats: int, figures: int | None = None) -> float:
    """The share of relabellings of the readings that are kept which alarm; in each, whole repeats swap their sides.

    So many `figures` of a family are looked at, or all of them, and corrected together.
    """
    groups = [excesses(group[:figures]) for group in pooled(kept(), repeats)]

    @cache
    def alarms(group: int, swapped: int) -> bool:
        return alarm(groups[group], swapped)

    draw = random.Random(1)
    # To swap all repeats but these is the same comparison from the other side.
    every = 2**repeats - 1
    chosen = ((number % len(groups), draw.getrandbits(repeats)) for number in range(TRIES))
    return sum(alarms(group, min(swapped, swapped ^ every)) for group, swapped in chosen) / TRIES


def excesses(pairs: Blocks) -> list[tuple[list[float], float]]:
    """By figure the logarithms of the ratios of both sides, one for each repeat, and the largest of a reading.

    The latter is 1 at least, as it is where a table is made.
    """
    return [
        ([math.log(b) - math.log(a) for a, b in one], max(1.0, *(abs(math.log(side)) for pair in one for side in pair)))
        for one in pairs
    ]


def alarm(figures: Sequence[tuple[Sequence[float], float]], swapped: int) -> bool:
    """Whether `family` proves anything of these `excesses` once the repeats at the bits of `swapped` swap their sides.

    Holm's procedure does if and only if the smallest p is at most the level over the number of figures. All else of
    a difference takes many times as long, and there are thousands of relabellings.
    """
    chances = []
    for ratios, size in figures:
        swaps = [-one if swapped >> place & 1 else one for place, one in enumerate(ratios)]
        chances.append(signed_rank(swaps, size=size).p_of())
    return min(chances) <= ALPHA / len(chances)


def alarming(found: Mapping[str, Any]) -> list[str]:
    """The runs in which like with like was called different."""
    return [
        run
        for run, figures, *sides in control_sides(found)
        if any(one.proven for one in family(blocks(figures, *sides)))
    ]


def claimed(slowed: Sequence[Mapping[str, Any]], side: str) -> list[str]:
    """The runs in which the slowed workload of this side was proven to be slower."""
    said = []
    for run in slowed:
        place = list(run["figures"]).index(SLOWED)
        one = family(blocks(run["figures"], "side base", f"side {side}"))[place]
        if one.proven and (one.percent or 0.0) > 0:
            said.append(run["run"])
    return said


def seen_percent(slowed: Sequence[Mapping[str, Any]], side: str) -> float:
    """By how much the slowed workload was slower on this side: the median of the differences, in percent."""
    return float(
        statistics.median(run["differences"][f"side {side}"][SLOWED]["difference"]["percent"] for run in slowed)
    )


def table(found: Mapping[str, Any]) -> str:
    """The table, and below it every run."""
    rows = [("A/A comparisons with a false positive", len(list(control_sides(found))), str(len(alarming(found))))]
    for repeats, figures, of in ((8, None, "all metrics"), (12, None, "all metrics"), (12, 1, f"`{SLOWED}` alone")):
        rate = f"{100 * relabelled(repeats, figures):.1f} %"
        rows.append((f"relabellings of {repeats} real blocks, {of}, with a false positive", TRIES, rate))
    for name, part in (("first", found["earlier"]), ("second", found)):
        for side, factor in SLOWER.items():
            slowed, most = part["slowed"], part["slower_percent"][side]
            what = f"{name} measurement, quota for {most:.1f} % ({factor:g} detectable sizes)"
            seen = f"{seen_percent(slowed, side):+.1f} % seen: proven"
            rows.append((f"{what}, {seen}", len(slowed), str(len(claimed(slowed, side)))))
    for what, ratios in (
        ("width of an interval over that without blocks, median", widths_by_blocks(found)),
        ("the same with the yardstick taken out, over that as measured", widths_without_yardstick(found)),
    ):
        rows.append((what, len(ratios), f"{statistics.median(ratios):.2f}"))
    lines = ["| what | of | how many |", "| --- | ---: | ---: |"]
    lines += [f"| {what} | {of:,} | {many} |" for what, of, many in rows]
    return "\n".join([*lines, "", *_runs(found)])


def _runs(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"The differences of `{SLOWED}`, in percent with their intervals, as `vmlab compare` gave them:"
    yield ""
    yield "| run | A/A | twice | a quarter |"
    yield "| --- | --- | --- | --- |"
    for part in (found["earlier"], found):
        for run in part["controls"]:
            yield f"| {run['run']} | {_said(run, 'side B')} | | |"
        for run in part["slowed"]:
            said = [_said(run, f"side {side}") for side in ("same", "twice", "quarter")]
            yield f"| {run['run']} | {' | '.join(said)} |"


def _said(run: Mapping[str, Any], side: str) -> str:
    if side not in run["differences"]:
        return ""
    one = run["differences"][side][SLOWED]["difference"]
    if one["interval_percent"] is None:
        return str(one["verdict"])
    low, high = one["interval_percent"]
    mark = "" if one["verdict"] == Verdict.PROVEN else "~ "
    return f"{mark}{one['percent']:+.1f} ({low:+.1f} to {high:+.1f})"


def current(page: str) -> str:
    """The page with the table as the readings have it."""
    return _PLACE.sub(lambda place: f"{place[1]}{table(kept())}\n{place[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
