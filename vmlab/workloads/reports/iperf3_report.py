"""What ``iperf3 -J`` 3.12 prints at the end of a test, on the client and on the server; and what is not believed of it:
how long each side worked, and what became of the bytes.

iperf3 ends what is omitted, and the test, by timers of each side's own (src/iperf_api.c, iperf_reset_stats). On a
busy machine the first may come late: that side then counts for less than it was asked, from the moment at which the
timer came, and its rate is true of that span. What each side did in the test as a whole depends on no timer: its
intervals, omitted or not, follow each other without a gap.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vmlab.model.errors import WorkloadError
from vmlab.workloads.verification import only_document

_Count = Annotated[int, Field(ge=0, strict=True)]
_Amount = Annotated[float, Field(ge=0, strict=True)]
_Seconds = Annotated[float, Field(gt=0, strict=True)]
"""Strict: text, true and false are no numbers."""
_SHORTEST = 0.98
"""Part of the time asked for that a test must have lasted, as iperf3's own timers end it some milliseconds early."""
_LATE = 0.25
"""Seconds by which the server's clock may start after the client's: it waits for a CPU first. 65 ms were seen where
other work had half of the CPUs. The client ends the test for both."""
_APART = 0.5
"""Seconds by which one side may have worked for longer than the other, and have counted for longer than its intervals
took. Between two emulated guests 33 ms were seen."""
_LEAST_COUNTED = 0.5
"""Part of the time asked for that must have been counted after what is omitted; less is another test."""
_RATE_TOLERANCE = 0.1
"""How far the rate of UDP may be from the one asked for, as a part of it. iperf3 sends after a pause what it missed."""
_ROUND_BLOCKS = 10
"""Blocks of each stream that iperf3 sends between two looks at its timers (iperf_defaults, multisend).

An interval ends and the counts begin anew at the same time, by two timers: what was sent in between is in no interval.
"""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Sum(_Part):
    """All streams together, without what was omitted. The last four are of UDP, `retransmits` of a TCP sender."""

    seconds: _Seconds
    bytes: _Count
    retransmits: _Count | None = None
    jitter_ms: _Amount = 0.0
    lost_packets: _Count = 0
    packets: _Count = 0


class CpuUse(_Part):
    """CPU time of the iperf3 process here and at the far end, in percent of one CPU."""

    host_total: _Amount
    remote_total: _Amount


class End(_Part):
    """The sums. On the server the sum of the other side is 0 bytes: it speaks for itself alone."""

    sum_sent: Sum
    sum_received: Sum
    cpu_utilization_percent: CpuUse


class Connection(_Part):
    """One stream's addresses."""

    local_host: str
    remote_host: str


class Asked(_Part):
    """The test as iperf3 understood it; times in seconds, `blksize` in bytes."""

    protocol: str
    num_streams: _Count
    blksize: _Count
    omit: _Count
    duration: _Count
    reverse: _Count
    target_bitrate: _Count
    bytes: _Count
    blocks: _Count


class Start(_Part):
    """How the test began; `sock_bufsize` is the size of the sockets' buffers in bytes, 0 for the kernel's own."""

    sock_bufsize: _Count
    connected: tuple[Connection, ...]
    test_start: Asked


class Span(_Part):
    """All streams in one interval, of a second as a rule. While `omitted` nothing counts for the sums of the end."""

    seconds: _Amount
    bytes: _Count
    omitted: bool


class Interval(_Part):
    """One interval of this side's own; they follow each other without a gap."""

    sum: Span


class Iperf3Report(_Part):
    """One side's account."""

    start: Start
    intervals: tuple[Interval, ...]
    end: End


def parse_iperf3(text: str, side: str) -> Iperf3Report:
    """One side's JSON, with what warnings may stand before it.

    Raises WorkloadError with iperf3's own error, or with the first thing that is missing.
    """
    document, _ = only_document(text, side)
    if "error" in document:
        raise WorkloadError(f"{side}: {document['error']}")
    try:
        return Iperf3Report.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise WorkloadError(f"{side}'s account cannot be read at {where or 'its top'}: {first['msg']}") from error


def demand_lasted(what: str, report: Iperf3Report, total: Sum, omit: float, time: float, *, serves: bool) -> None:
    """One side worked for all of the time that was asked for, and its total is what its intervals counted.

    `what` is the side's name, `total` its own sum, `omit` and `time` are in seconds. The side that `serves` may have
    begun late. A total of more time than the intervals took would make the rate too low. Raises WorkloadError.
    """
    spans = [one.sum for one in report.intervals if not one.sum.omitted]
    counted, seconds = sum(one.bytes for one in spans), sum(one.seconds for one in spans)
    if counted != total.bytes:
        raise WorkloadError(f"the {what} counted {counted} bytes in its intervals, but {total.bytes} altogether")
    lasted = sum(one.sum.seconds for one in report.intervals) if omit else total.seconds
    if lasted + (_LATE if serves else 0.0) < _SHORTEST * (omit + time):
        raise WorkloadError(f"the {what} worked for {lasted:.3f} s, not {omit + time:.0f} s")
    if total.seconds < _LEAST_COUNTED * time:
        raise WorkloadError(f"the {what} counted {total.seconds:.3f} s, less than half of {time:.0f} s")
    if total.seconds > seconds / _SHORTEST + _APART:
        raise WorkloadError(f"the {what} counted {total.seconds:.3f} s, but its intervals took {seconds:.3f} s")


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

    What was omitted is part of both, as each side begins to count at a time of its own. Neither side worked for longer
    than the other, and the client's time is held against its clock (`Iperf3.tool_time`), so that all times are bounded.
    Raises WorkloadError.
    """
    shorter, longer = sorted(sum(one.sum.seconds for one in report.intervals) for report in (sender, receiver))
    if longer > shorter / _SHORTEST + _APART:
        raise WorkloadError(f"one side of iperf3 worked for {longer:.3f} s, and the other for {shorter:.3f} s")
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
