"""What ``iperf3 -J`` 3.12 prints at the end of a test, on the client and on the server."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vmlab.model.errors import WorkloadError
from vmlab.workloads.programs import only_document

_Count = Annotated[int, Field(ge=0, strict=True)]
_Amount = Annotated[float, Field(ge=0, strict=True)]
_Seconds = Annotated[float, Field(gt=0, strict=True)]
"""Strict: text, true and false are no numbers."""


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
