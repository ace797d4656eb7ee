"""What is not believed of iperf3's two accounts: how long each side worked, and what became of the bytes.

iperf3 3.12 ends what is omitted, and the test, by timers of each side's own (src/iperf_api.c, iperf_reset_stats). On a
busy machine the first may come late: that side then counts for less than it was asked, from the moment at which the
timer came, and its rate is true of that span. What each side did in the test as a whole depends on no timer: its
intervals, omitted or not, follow each other without a gap.
"""

from __future__ import annotations

from vmlab.model.errors import WorkloadError
from vmlab.workloads.reports.iperf3_report import Iperf3Report, Sum

_SHORTEST = 0.98
"""Part of the time asked for that a test must have lasted, as iperf3's own timers end it some milliseconds early."""
_LEAST_COUNTED = 0.5
"""Part of the time asked for that must have been counted after what is omitted; less is another test."""
_RATE_TOLERANCE = 0.1
"""How far the rate of UDP may be from the one asked for, as a part of it. iperf3 sends after a pause what it missed."""
_ROUND_BLOCKS = 10
"""Blocks of each stream that iperf3 sends between two looks at its timers (iperf_defaults, multisend).

An interval ends and the counts begin anew at the same time, by two timers: what was sent in between is in no interval.
"""


def demand_lasted(what: str, report: Iperf3Report, total: Sum, omit: float, time: float) -> None:
    """One side worked for all of the time that was asked for, and its total is what its intervals counted.

    `what` is the side's name, `total` its own sum, `omit` and `time` are in seconds. Raises WorkloadError.
    """
    counted = sum(one.sum.bytes for one in report.intervals if not one.sum.omitted)
    if counted != total.bytes:
        raise WorkloadError(f"the {what} counted {counted} bytes in its intervals, but {total.bytes} altogether")
    lasted = sum(one.sum.seconds for one in report.intervals) if omit else total.seconds
    if lasted < _SHORTEST * (omit + time):
        raise WorkloadError(f"the {what} worked for {lasted:.3f} s, not {omit + time:.0f} s")
    if total.seconds < _LEAST_COUNTED * time:
        raise WorkloadError(f"the {what} counted {total.seconds:.3f} s, less than half of {time:.0f} s")


def demand_time(seconds: float, omit: float, time: float) -> None:
    """The client ran for at least as long as was asked for, by the clock of its place. Raises WorkloadError."""
    if seconds < _SHORTEST * (omit + time):
        raise WorkloadError(f"iperf3's client ended after {seconds:.3f} s, but {omit + time:.0f} s were asked for")


def rate_reached(sent: Sum, rate: int) -> float:
    """What UDP sent in a second, as a part of `rate`, in bit/s.

    Raises WorkloadError for much less, as the loss of a lighter load describes another test, and for much more, which
    is what was not sent while nothing was counted.
    """
    reached = 8 * sent.bytes / sent.seconds / rate
    if abs(reached - 1) > _RATE_TOLERANCE:
        found, asked = (f"{bits / 1e6:.4g} Mbit/s" for bits in (reached * rate, rate))
        raise WorkloadError(f"the sender sent {found}, {reached:.0%} of the {asked} that were asked for")
    return reached


def demand_arrived(sender: Iperf3Report, receiver: Iperf3Report, in_flight: float | None) -> None:
    """No more arrived than was sent; and over TCP, all but `in_flight` bytes. It is None over UDP, which loses packets.

    What was omitted is part of both, as each side begins to count at a time of its own. Raises WorkloadError.
    """
    asked = sender.start.test_start
    between = _ROUND_BLOCKS * asked.num_streams * asked.blksize if asked.omit else 0
    sent, arrived = _moved(sender), _moved(receiver)
    if arrived - sent > between:
        raise WorkloadError(f"{arrived} bytes arrived, but {sent} were sent")
    if in_flight is not None and sent - arrived > in_flight + between:
        most = in_flight + between
        raise WorkloadError(f"{sent} bytes were sent and {arrived} arrived; at most {most:.0f} can have been in flight")


def _moved(report: Iperf3Report) -> int:
    return sum(one.sum.bytes for one in report.intervals)
