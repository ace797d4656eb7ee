"""How often the intervals of pooled runs hold what they should: simulated, and written to docs/evidence/statistics.md.

`python -m tests.analysis.coverage_page` writes the table again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vmlab.analysis.statistics.descriptive import student_t

PAGE = Path(__file__).parents[2] / "docs/evidence/statistics.md"
RUNS, SPREADS, BLOCKS, TRIES = (3, 5, 7, 10), (0, 1, 3), 8, 20_000
HALVINGS = 60
BEGIN, END = "<!-- table: coverage -->\n", "<!-- end -->\n"
Array = npt.NDArray[np.float64]


class Pooled(NamedTuple):
    """What `random_effects` makes of many tries at once."""

    mean: Array
    error: Array
    tau_squared: Array
    within: Array


def pooled(effects: Array, variances: Array) -> Pooled:
    """Of effects and variances whose last axis are the runs: REML by halving, and the error by HKSJ, not below 1."""
    runs = effects.shape[-1]

    def middle(weights: Array) -> Array:
        found: Array = (weights * effects).sum(-1, keepdims=True) / weights.sum(-1, keepdims=True)
        return found

    def slope(tau_squared: Array) -> Array:
        weights = 1 / (variances + tau_squared[..., None])
        apart = (weights**2 * (effects - middle(weights)) ** 2).sum(-1)
        found: Array = apart - weights.sum(-1) + (weights**2).sum(-1) / weights.sum(-1)
        return found

    low, high = np.zeros(effects.shape[:-1]), np.full(effects.shape[:-1], 1e6)
    for _ in range(HALVINGS):
        between = (low + high) / 2
        rising = slope(between) > 0
        low, high = np.where(rising, between, low), np.where(rising, high, between)
    tau_squared = np.where(slope(np.zeros_like(low)) > 0, high, 0.0)
    weights = 1 / (variances + tau_squared[..., None])
    squares = (weights * (effects - middle(weights)) ** 2).sum(-1) / (runs - 1)
    error = np.sqrt(np.maximum(1.0, squares) / weights.sum(-1))
    return Pooled(middle(weights)[..., 0], error, tau_squared, variances.mean(-1))


class Coverage(NamedTuple):
    """Shares of tries in which an interval has the true value in it, in percent, and how wide that of a run is.

    `shown` is of what another run of as many blocks shows, `true` of its true effect, `mean` of the mean of all runs.
    """

    shown: float
    true: float
    mean: float


def coverage(runs: int, spread: float, *, blocks: int = BLOCKS, tries: int = TRIES, unequal: bool = False) -> Coverage:
    """Of normal blocks; `spread` is the standard deviation between runs over the standard error of a run's own mean.

    With `unequal`, every second run's blocks are twice as far apart.
    """
    draw = np.random.default_rng(1000 * runs + 10 * round(spread) + blocks)
    deviations = np.where(np.arange(runs + 1) % 2, 2.0, 1.0) if unequal else np.ones(runs + 1)
    errors = deviations / np.sqrt(blocks)
    truth = spread * errors.mean() * draw.normal(size=(tries, runs + 1))
    readings = truth[..., None] + deviations[:, None] * draw.normal(size=(tries, runs + 1, blocks))
    shown = readings.mean(-1)
    found = pooled(shown[:, :-1], readings[:, :-1].var(-1, ddof=1) / blocks)
    t = student_t(runs - 1)

    def within(value: Array | float, variance: Array) -> float:
        return 100 * float((abs(value - found.mean) <= t * np.sqrt(variance)).mean())

    of_true = found.tau_squared + found.error**2
    return Coverage(
        shown=within(shown[:, -1], of_true + found.within),
        true=within(truth[:, -1], of_true),
        mean=within(0.0, found.error**2),
    )


def table() -> str:
    """The table of the page."""
    lines = [
        "| runs | spread, in standard errors of a run | another run's value | its true difference | the mean |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for runs in RUNS:
        for spread in SPREADS:
            one = coverage(runs, spread)
            lines.append(f"| {runs} | {spread} | {one.shown:.1f} % | {one.true:.1f} % | {one.mean:.1f} % |")
    return "\n".join(lines) + "\n"


def current(page: str) -> str:
    """The page with the table as it is made now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
