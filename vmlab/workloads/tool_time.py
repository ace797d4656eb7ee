"""How long a tool says that it worked, held against how long its client ran: the one rule for the times of all kinds.

A tool's figures follow from its own account of time, which no count shows to be wrong. The lab's start line measures
the client that runs the tool, by the monotonic clock of its place, which is compared with the host's. So a tool may not
account for more time than its client ran (a clock that went wrong, a figure that is made up), nor for much less: its
rates would be too high.

What the client does besides is declared by each kind, `ToolTime.around`: seconds on a host that does nothing else, such
as its start, its connections, arrays that are filled before they are copied. It may have taken `_TIMES` as long, and
longer where its guests waited for a CPU meanwhile: of a tile's workloads beside eleven other guests on two CPUs,
connecting takes four times as long. How long guests waited, the host's kernel counts for each vCPU (schedstat, which
libvirt gives as ``vcpu.N.delay``). With u for what is granted, r for the time that a guest ran and w for the time that
it waited, that makes u * (1 + w / max(r, u)).

Measured over 2,800 workloads of the recorded experiments, under emulation and with up to twelve guests on two CPUs,
none took more than four fifths of what is granted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.model.results import CpuUse

_TIMES = 3.0
_LEAST = 1.0
"""Seconds that are granted in any case."""
_WAITED_UNSEEN = 3.0
"""Seconds of waiting for each that is granted, where nobody counted: on the host, in guests of another one."""
_ROUNDED = 0.005
"""Seconds by which a tool may have rounded its time up."""


@dataclass(frozen=True, slots=True)
class ToolTime:
    """`seconds` of the client's run that the tool's figures account for, and those that it takes `around` them, alone
    on an idle host."""

    seconds: float
    around: float


def demand_not_longer(tool: str, time: ToolTime | None, seconds: float) -> None:
    """Raises WorkloadError where a tool accounts for more time than its client ran. None was not declared."""
    if time is not None and time.seconds > seconds + _ROUNDED:
        raise WorkloadError(f"{tool} reports {time.seconds:.3f} s of work, but its client ran for {seconds:.3f} s")


def demand_tool_time(
    tool: str, time: ToolTime | None, seconds: float, used: Iterable[CpuUse] = (), lost: float = 0.0
) -> None:
    """Raises WorkloadError where a tool accounts for more time than its client ran, or for much less.

    `used` is what the guests of both its sides did while the client ran for `seconds`; none where that is not known.
    For `lost` of these seconds something stood still: the tool's clock perhaps as well, and that is no fault of its.
    """
    demand_not_longer(tool, time, seconds)
    if time is None:
        return
    alone = max(_LEAST, _TIMES * time.around)
    slower = [1 + one.waited / max(one.ran, alone) for one in used] or [1 + _WAITED_UNSEEN]
    granted = alone * max(slower) + lost
    if seconds - time.seconds > granted:
        raise WorkloadError(
            f"{tool} reports {time.seconds:.3f} s of work, but its client ran for {seconds:.3f} s; "
            f"at most {granted:.1f} s go by around the work"
        )
