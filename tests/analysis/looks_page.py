"""What planned looks at a table cost and save: simulated, and written to docs/evidence/statistics.md.

`python -m tests.analysis.looks_page` writes the tables again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vmlab.analysis.statistics.rank_test import end_of, signed_rank
from vmlab.analysis.statistics.sample_size import ALPHA, detectable, level_divisor

PAGE = Path(__file__).parents[2] / "docs/evidence/statistics.md"
LOOKS, TRIES = (10, 14, 18, 24), 10_000
FIGURES, SIZES = (1, 3, 6), (0.0, 1.0, 2.0, 3.0)
NOISE = ("normal, 2 %", "t with 2 degrees of freedom, 5 %", "normal, 10 %, one in twenty disturbed by 30 %")
DEVIATION = 0.02 * np.sqrt(2)
"""Of the logarithm of a ratio of two sides with the first of these noises."""
ALARMS, SAVINGS = "<!-- table: alarms of looks -->\n", "<!-- table: savings of looks -->\n"
END = "<!-- end -->\n"
Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


def ratios(noise: str, seed: int, shape: tuple[int, ...]) -> Array:
    """Logarithms of the ratios of two sides that do not differ, the last axis the blocks."""
    draw = np.random.default_rng(seed)

    def side() -> Array:
        if noise == NOISE[0]:
            return draw.normal(0, 0.02, shape)
        if noise == NOISE[1]:
            return 0.05 * draw.standard_t(2, shape)
        return draw.normal(0, 0.10, shape) + 0.3 * (draw.random(shape) < 0.05)

    return side() - side()


def chances(found: Array) -> Array:
    """The p of `signed_rank` of many sets at once; a shift is above 0 as often as the positive ranks' sum says."""
    blocks = found.shape[-1]
    ranks = np.argsort(np.argsort(abs(found), axis=-1), axis=-1) + 1
    above = np.where(found > 0, ranks, 0).sum(axis=-1)
    fewer = np.minimum(above, blocks * (blocks + 1) // 2 - above)
    known: Array = np.array([_chance(blocks, count) for count in range(fewer.max() + 1)])[fewer]
    return known


@cache
def _chance(blocks: int, count: int) -> float:
    """The p of differences of which the positive ones have `count` as the sum of their ranks."""
    found = [-float(rank) for rank in range(1, blocks + 1)]
    for rank in range(blocks, 0, -1):
        if rank <= count:
            found[rank - 1], count = float(rank), count - rank
    return signed_rank(found).p_of()


def by_holm(found: Array, alpha: float) -> Truths:
    """Which figures, the last axis, Holm's procedure proves at `alpha` over all of them."""
    order, figures = np.argsort(found, axis=-1), found.shape[-1]
    passed = np.take_along_axis(found, order, axis=-1) <= alpha / (figures - np.arange(figures))
    proven = np.zeros(found.shape, dtype=bool)
    np.put_along_axis(proven, order, np.logical_and.accumulate(passed, axis=-1), axis=-1)
    return proven


class Looked(NamedTuple):
    """What a table says at each look, and at which of them the run ends; the last axis of both is figures or tries."""

    proven: Truths
    ended: npt.NDArray[np.intp]

    @property
    def shown(self) -> Truths:
        """What the table says that is shown in the end."""
        found: Truths = np.take_along_axis(self.proven, self.ended[None, :, None], axis=0)[0]
        return found

    @property
    def repeats(self) -> float:
        """How many are measured on average."""
        return float(np.array(LOOKS)[self.ended].mean())


def looked(found: Array, *, divided: bool = True) -> Looked:
    """Looks at tries of a table, whose axes are tries, figures, blocks: it ends once every figure is proven."""
    alpha = ALPHA / level_divisor(0, len(LOOKS) if divided else 1)
    proven = np.array([by_holm(chances(found[:, :, :look]), alpha) for look in LOOKS])
    every: Truths = np.asarray(proven.all(axis=-1))
    every[-1] = True
    return Looked(proven, every.argmax(axis=0))


def size_of(figures: int) -> float:
    """The difference that all of the repeats, and one look at them, find in four of five cases, as a logarithm."""
    found = detectable((LOOKS[-1],), ALPHA / figures)
    assert found is not None
    return float(found * DEVIATION)


def with_size(found: Array, sizes: float, differing: int) -> Array:
    """The ratios, in which the first `differing` figures are so many detectable sizes larger."""
    larger = sizes * size_of(found.shape[1]) * (np.arange(found.shape[1]) < differing)
    shifted: Array = found + larger[None, :, None]
    return shifted


def covered(found: Array, at: Looked, truth: float) -> float:
    """How often the intervals shown in the end have the true difference, at the highest level that Holm gives one."""
    inside = np.zeros(len(found), dtype=bool)
    for number, look in enumerate(LOOKS):
        those = found[at.ended == number, 0, :look]
        one, other = np.triu_indices(look)
        means = np.sort((those[:, one] + those[:, other]) / 2, axis=-1)
        end = end_of((look,), ALPHA / len(LOOKS))
        inside[at.ended == number] = (means[:, end - 1] <= truth) & (truth <= means[:, -end])
    return float(inside.mean())


class Alarms(NamedTuple):
    """Shares of tries in which what does not differ is proven: in the table that is shown, at any look, at any look of
    figures of which all others differ, and at any look at the whole level.
    """

    shown: float
    any_look: float
    among_others: float
    undivided: float


def alarms(noise: str, figures: int, tries: int = TRIES, seed: int = 11) -> Alarms:
    """Of tables of so many figures."""
    alike = ratios(noise, seed, (tries, figures, LOOKS[-1]))
    found, others = looked(alike), looked(with_size(alike, SIZES[-1], figures - 1))
    return Alarms(
        shown=float(found.shown.any(axis=-1).mean()),
        any_look=float(found.proven.any(axis=(0, 2)).mean()),
        among_others=float(others.proven[:, :, -1].any(axis=0).mean()),
        undivided=float(looked(alike, divided=False).proven.any(axis=(0, 2)).mean()),
    )


def table_of_alarms() -> str:
    """The first table of the page: the lowest and the highest of the noises."""
    lines = [
        "| metrics | the table that is shown | any analysis | any analysis, all others differ | at 5 % each time |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for figures in FIGURES:
        every = [alarms(noise, figures) for noise in NOISE]
        ends = [sorted(100 * one[place] for one in every) for place in range(len(Alarms._fields))]
        lines.append(f"| {figures} | {' | '.join(f'{one[0]:.1f} to {one[-1]:.1f}' for one in ends)} |")
    return "\n".join(lines) + "\n"


def table_of_savings() -> str:
    """The second one: normal noise, all figures differing alike."""
    lines = [
        "| metrics | difference, in detectable sizes | repeats measured | cells saved | all proven "
        "| all proven at one analysis | intervals with the true difference |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for figures in FIGURES:
        for sizes in SIZES:
            drawn = with_size(ratios(NOISE[0], 12, (TRIES, figures, LOOKS[-1])), sizes, figures)
            found = looked(drawn)
            once = by_holm(chances(drawn), ALPHA).all(axis=-1).mean()
            shares = [1 - found.repeats / LOOKS[-1], found.shown.all(axis=-1).mean(), once]
            shares += [covered(drawn, found, sizes * size_of(figures))]
            words = " | ".join(f"{100 * one:.1f} %" for one in shares)
            lines.append(f"| {figures} | {sizes:g} | {found.repeats:.1f} | {words} |")
    return "\n".join(lines) + "\n"


def current(page: str) -> str:
    """The page with both tables as they are made now."""
    for begin, made in ((ALARMS, table_of_alarms()), (SAVINGS, table_of_savings())):
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(END)
        page = f"{before}{begin}{made}{END}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
