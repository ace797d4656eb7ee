"""What a guest that booted as the lab has it says of its boot."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.workloads.shell import Completed

AS_THE_LAB = """running
qemu-guest-agent.service loaded active running QEMU Guest Agent
vmlab.target             loaded active active  The lab's services
"""


def obliging(argv: Sequence[str], boot: str = AS_THE_LAB) -> Completed:
    """Success, and to the question after the boot the answer `boot`."""
    return Completed(0, boot if "is-system-running" in " ".join(argv) else "", "")
