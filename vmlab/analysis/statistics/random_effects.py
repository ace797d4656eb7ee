"""Several runs as a sample of all runs like them: their mean, how far apart they lie, and what another one would show.

The model is that of a random-effects meta-analysis. Run i shows y = μ + u + e, where u has the variance τ² between runs
and e the known variance v of the run's own mean. τ² is estimated by restricted maximum likelihood: Viechtbauer (Journal
of Educational and Behavioral Statistics 30, 2005). The interval of μ is that of Hartung and Knapp (Statistics in
Medicine 20, 2001) and of Sidik and Jonkman (ibid. 21, 2002), with Student's t of k - 1 degrees of freedom for k runs.
Its factor is not below 1, as Jackson and others discuss for few studies (ibid. 36, 2017); Q is Cochran's (Biometrics
10, 1954), I² that of Higgins and Thompson (Statistics in Medicine 21, 2002). The prediction interval is that of
Higgins, Thompson and Spiegelhalter (Journal of the Royal Statistical Society A 172, 2009), with k - 1 degrees of
freedom as metafor has it beside this interval of μ. docs/explanation/statistics.md says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vmlab.analysis.statistics.descriptive import CONFIDENCE, mean, student_t

FEWEST_RUNS = 3
"""With two runs nothing is known of the spread between runs."""
ENOUGH_BLOCKS = 4
"""From so many readings a run on, `RandomEffects.interval` covers 93 % at least, as simulated."""
LEAST_COVERAGE = 89
"""What it covers of two or three readings a run, in percent, at the least: docs/evidence/statistics.md."""
_LEAST_VARIANCE = 1e-18
"""Of a run whose readings are all equal: weights are the inverse of variances."""
_PRECISION = 1e-13


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """What `runs` runs show together, in the unit of what each of them shows.

    `error` is the standard error of the `mean` by Hartung, Knapp, Sidik and Jonkman, `tau` the standard deviation
    between runs, `within` the mean variance of one run's own figure. `q` is Cochran's, with its `q_p`, and `i2` the
    share of the variance that is between runs, in percent.
    """

    mean: float
    error: float
    tau: float
    within: float
    runs: int
    q: float
    q_p: float
    i2: float

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Of the mean of all runs like these."""
        return self._around(self.error, confidence)

    def prediction(self, variance: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Of what another run like these shows whose own figure has this `variance`.

        With a variance of 0 it is the interval of Higgins, Thompson and Spiegelhalter, which is of the run's true
        effect: what it would show if it were repeated without end.
        """
        return self._around(math.sqrt(self.tau**2 + self.error**2 + variance), confidence)

    def _around(self, deviation: float, confidence: float) -> tuple[float, float]:
        half = student_t(self.runs - 1, confidence) * deviation
        return self.mean - half, self.mean + half


def random_effects(effects: Sequence[float], variances: Sequence[float]) -> RandomEffects:
    """What runs show together whose own figures are `effects`, each the mean of readings with its variance.

    Raises ValueError for fewer than `FEWEST_RUNS`.
    """
    runs = len(effects)
    if runs < FEWEST_RUNS:
        raise ValueError(f"the spread between runs takes {FEWEST_RUNS} of them at least")
    known = [max(one, _LEAST_VARIANCE) for one in variances]
    fixed = [1 / one for one in known]
    q = _squares(effects, fixed)
    tau_squared = _restricted_likelihood(effects, known)
    weights = [1 / (one + tau_squared) for one in known]
    factor = max(1.0, _squares(effects, weights) / (runs - 1))
    total = math.fsum(fixed)
    typical = (runs - 1) * total / (total**2 - math.fsum(one**2 for one in fixed))
    return RandomEffects(
        mean=_weighted(effects, weights),
        error=math.sqrt(factor / math.fsum(weights)),
        tau=math.sqrt(tau_squared),
        within=mean(list(variances)),
        runs=runs,
        q=q,
        q_p=chi_square_p(q, runs - 1),
        i2=100 * tau_squared / (tau_squared + typical),
    )


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / math.fsum(weights)


def _squares(values: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted sum of squares around the weighted mean."""
    middle = _weighted(values, weights)
    return math.fsum(weight * (value - middle) ** 2 for value, weight in zip(values, weights, strict=True))


def _restricted_likelihood(effects: Sequence[float], variances: Sequence[float]) -> float:
    """The τ² at which the restricted likelihood is largest; 0 where it falls from 0 on."""

    def slope(tau_squared: float) -> float:
        """Twice the derivative of its logarithm."""
        weights = [1 / (one + tau_squared) for one in variances]
        squared = [one**2 for one in weights]
        middle, total = _weighted(effects, weights), math.fsum(weights)
        apart = math.fsum(one * (value - middle) ** 2 for value, one in zip(effects, squared, strict=True))
        return apart - total + math.fsum(squared) / total

    return _falling_root(slope) if slope(0.0) > 0 else 0.0


def _falling_root(function: Callable[[float], float]) -> float:
    """Where a function that is above 0 at 0, and below it from somewhere on, passes 0."""
    low, high = 0.0, 1.0
    while function(high) > 0:
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return high


def chi_square_p(value: float, freedom: int) -> float:
    """The probability of a χ² of `freedom` ≥ 1 degrees above `value`: Abramowitz and Stegun (1964), 26.4.4 and 5."""
    half, odd = value / 2, freedom % 2
    found = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.exp(-half) * (math.sqrt(half) / math.gamma(1.5) if odd else 1.0)
    for step in range(1, freedom // 2 + 1):
        found += term
        term *= half / (step + odd / 2)
    return min(1.0, found)
