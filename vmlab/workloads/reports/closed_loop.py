"""What the latencies of a closed loop have to be: its clients begin the next operation when the last one is over.

Little's law (Little, A proof for the queuing formula L = λW, 1961): throughput times mean latency is the number
of operations under way. No latency can be longer than that allows; where the clients are always busy, none can be much
shorter either. With a pace or a rate clients wait between operations: their latencies may be as short as they like,
and only `mean_bounds` holds of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from vmlab.model.errors import WorkloadError

_BUSY = 0.25
"""The least part of its time that a client spends in operations and not between them. It was 0.91 and more in results
that are kept, most of them of emulated guests."""


def demand_busy(tool: str, together: float, clients: float, seconds: float, longest: float) -> None:
    """Raises WorkloadError where the operations of `clients` took less time together than these were busy.

    `together` are the seconds of all operations, or the most that they can be; the run took `seconds`. No client is
    idle before the last operation begins, which is no more than the `longest` before the end. One works until then.
    """
    last = min(longest, seconds)
    busy = clients * (seconds - last) + last
    if together < _BUSY * busy:
        raise WorkloadError(
            f"the latencies of {tool} are too short: its operations took at most {together:.3f} s together, and "
            f"{clients:g} at a time {busy:.3f} s in its {seconds:.3f} s"
        )


def mean_bounds(tool: str, percentiles: Mapping[int, float]) -> tuple[float, float]:
    """The least and the greatest mean of latencies, in seconds, of which these are `percentiles`, 100 among them.

    Raises WorkloadError where a higher percentile is shorter than a lower one.
    """
    ordered = sorted(percentiles.items())
    least = most = 0.0
    for (below, lower), (percent, value) in pairwise([(0, 0.0), *ordered]):
        if value < lower:
            raise WorkloadError(f"{tool} has {value:g} s as percentile {percent} and {lower:g} s as percentile {below}")
        least += (percent - below) / 100 * lower
        most += (percent - below) / 100 * value
    return least, most
