"""When a cell that was measured is not to be believed, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vmlab.lab.slot import Slot
from vmlab.lab.start import StartSkew
from vmlab.model.run import CacheProof
from vmlab.model.scenario import Limits

_SECONDS_WITHOUT_SAMPLE = 5.0
NOISE_PERCENT = 10.0
"""Other work above this share of the CPUs is told, below its limit too."""


@dataclass(frozen=True, slots=True)
class HostNoise:
    """What did not come from the lab while the workloads ran, as shares of all CPUs in percent; NaN if unknown."""

    other_percent: float
    steal_percent: float

    def notice(self, seconds: float | None) -> str | None:
        """A line for people where the host was not the lab's alone, or where `seconds` of work left no sample."""
        if math.isnan(self.other_percent) and (seconds or 0.0) > _SECONDS_WITHOUT_SAMPLE:
            return "no host figures were recorded while the workloads ran"
        if self.other_percent > NOISE_PERCENT:
            return f"the host's other work took {self.other_percent:.0f} % of the CPUs while the workloads ran"
        return None


def broken_rules(
    limits: Limits,
    slots: Sequence[Slot],
    proofs: Sequence[CacheProof],
    skew: StartSkew | None,
    noise: HostNoise,
) -> Iterator[str]:
    """One reason for each rule that the cell broke; none for a cell that stands."""
    for proof in proofs:
        if not proof.agrees:
            yield (
                f"{proof.guest}: cache={proof.expected} is not what QEMU has on {proof.file}: "
                f"O_DIRECT {_word(proof.o_direct)}, write cache {_word(proof.writeback)}, "
                f"no-flush {_word(proof.no_flush)}"
            )
    if skew is not None and skew.seconds > limits.start_skew:
        yield f"clients started {skew.seconds * 1e3:.0f} ms apart; the limit is {limits.start_skew * 1e3:.0f} ms"
    if noise.other_percent > limits.host_other_percent:
        yield (
            f"the host's other work took {noise.other_percent:.0f} % of the CPUs; "
            f"the limit is {limits.host_other_percent:.0f} %"
        )
    if noise.steal_percent > limits.host_steal_percent:
        yield (
            f"something above this host took {noise.steal_percent:.0f} % of the CPUs; "
            f"the limit is {limits.host_steal_percent:.0f} %"
        )
    for slot in slots:
        apart = slot.clock_disagreement() * 100
        if apart > limits.clock_drift_percent:
            yield f"{slot.label}: its guest's clock and the host's disagree by {apart:.1f} % over the run time"


def _word(flag: bool) -> str:
    return "on" if flag else "off"
