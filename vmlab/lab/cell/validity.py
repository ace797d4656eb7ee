"""Four rules by which a measured cell is invalid: proofs of cache modes and levers, start skew, guests' clocks.

`execution.judge` applies these and all others, such as those of `undisturbed` on what stood still and those of
`disturbance` on other load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.lab.cell.common_start import StartSkew
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.model.results import CacheProof, LeverProof
from vmlab.model.scenarios.scenario import Limits


def lever_faults(proofs: Sequence[LeverProof]) -> Iterator[str]:
    """One reason for each attribute that a guest has otherwise than was asked for."""
    for proof in proofs:
        if not proof.agrees:
            yield f"{proof.guest}: {proof.lever} is {proof.found}, not {proof.expected} as was asked ({proof.by})"


def proof_faults(proofs: Sequence[CacheProof]) -> Iterator[str]:
    """One reason for each disk that has another cache mode than was asked for."""
    for proof in proofs:
        if not proof.agrees:
            yield (
                f"{proof.guest}: cache={proof.expected} is not what QEMU has on {proof.file}: "
                f"O_DIRECT {_word(proof.o_direct)}, write cache {_word(proof.writeback)}, "
                f"no-flush {_word(proof.no_flush)}"
            )


def broken_rules(limits: Limits, instances: Sequence[WorkloadInstance], skew: StartSkew | None) -> Iterator[str]:
    """One reason for each limit on the common start and on guests' clocks that was exceeded."""
    if skew is not None and skew.seconds > limits.start_skew:
        yield f"clients started {skew.seconds * 1e3:.0f} ms apart; the limit is {limits.start_skew * 1e3:.0f} ms"
    for instance in instances:
        apart = instance.clock_disagreement() * 100
        if apart > limits.clock_drift_percent:
            yield (
                f"{instance.label}: its guest's clock and the host's disagree by {apart:.1f} % over the run time; "
                f"the limit is {limits.clock_drift_percent:g} %"
            )


def _word(flag: bool) -> str:
    return "on" if flag else "off"
