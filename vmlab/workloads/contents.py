"""What is in the files that a workload makes in its guest: the same in all guests, or in each its own.

Equal pages are what the host's KSM merges, so this is what decides how much memory it saves.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from vmlab.workloads.contract import WorkloadContext

Contents = Literal["identical", "unique"]


def own_seed(context: WorkloadContext) -> str:
    """A seed for what one guest alone has: of the run, the tile and the workload."""
    return f"{context.seed}-{context.tile}-{context.workload}"


def tool_seed(seed: str) -> int:
    """A seed of 31 bits for a tool, from a seed in words; never 0."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") % (2**31 - 1) + 1


def file_seed(contents: Contents, context: WorkloadContext) -> int:
    """The seed of files, for a tool: of the run alone where they are the same in all guests."""
    return tool_seed(str(context.seed) if contents == "identical" else own_seed(context))
