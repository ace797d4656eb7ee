"""What ``iperf3 -J`` 3.12 prints at the end of a test, on the client and on the server."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vmlab.model.errors import WorkloadError


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Sum(_Part):
    """All streams together, without what was omitted. The last four are of UDP, `retransmits` of a TCP sender."""

    seconds: float = Field(gt=0)
    bytes: int = Field(ge=0)
    retransmits: int | None = None
    jitter_ms: float = 0.0
    lost_packets: int = 0
    packets: int = 0


class CpuUse(_Part):
    """CPU time of the iperf3 process here and at the far end, in percent of one CPU."""

    host_total: float
    remote_total: float


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
    num_streams: int
    blksize: int
    omit: int
    duration: int
    reverse: int


class Start(_Part):
    """How the test began."""

    connected: tuple[Connection, ...]
    test_start: Asked


class Span(_Part):
    """All streams in one interval, of a second as a rule. While `omitted` nothing counts for the sums of the end."""

    seconds: float = Field(ge=0)
    bytes: int = Field(ge=0)
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
    """One side's JSON. Raises WorkloadError with iperf3's own error, or with the first thing that is missing."""
    try:
        document: Any = json.loads(text)
    except ValueError as error:
        shown = text.strip().splitlines()[-1][:200] if text.strip() else "nothing"
        raise WorkloadError(f"{side} should print a JSON document, but printed {shown}") from error
    if isinstance(document, dict) and "error" in document:
        raise WorkloadError(f"{side}: {document['error']}")
    try:
        return Iperf3Report.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise WorkloadError(f"{side}'s account cannot be read at {where or 'its top'}: {first['msg']}") from error
