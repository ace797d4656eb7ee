"""The rules by which a measured cell is invalid, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmlab.lab.start import StartSkew
from vmlab.lab.workload_instance import WorkloadInstance
from vmlab.model.results import CacheProof
from vmlab.model.scenario import Limits


def broken_rules(
    limits: Limits,
    instances: Sequence[WorkloadInstance],
    proofs: Sequence[CacheProof],
    skew: StartSkew | None,
    stood: Mapping[str, float],
) -> Iterator[str]:
    """One reason for each rule that the cell itself broke; none for a valid cell. `disturbance` has those on the host.

    `stood` are the seconds for which each guest's QEMU was stopped while the workloads ran. Any such time makes the
    cell invalid: the guest's clock may or may not go on meanwhile, so its own figures do not show it.
    """
    for proof in proofs:
        if not proof.agrees:
            yield (
                f"{proof.guest}: cache={proof.expected} is not what QEMU has on {proof.file}: "
                f"O_DIRECT {_word(proof.o_direct)}, write cache {_word(proof.writeback)}, "
                f"no-flush {_word(proof.no_flush)}"
            )
    if skew is not None and skew.seconds > limits.start_skew:
        yield f"clients started {skew.seconds * 1e3:.0f} ms apart; the limit is {limits.start_skew * 1e3:.0f} ms"
    for guest, seconds in stood.items():
        if seconds > 0:
            yield f"{guest}: its QEMU was stopped for {seconds:.3g} s while the workloads ran"
    for instance in instances:
        apart = instance.clock_disagreement() * 100
        if apart > limits.clock_drift_percent:
            yield (
                f"{instance.label}: its guest's clock and the host's disagree by {apart:.1f} % over the run time; "
                f"the limit is {limits.clock_drift_percent:g} %"
            )


def _word(flag: bool) -> str:
    return "on" if flag else "off"
