"""What a lab leaves to the guests that the host runs already, and how a plan says so."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.model.scenarios.scenario import Allow
from vmlab.model.units import format_bytes
from vmlab.plan.terms import HostFacts
from vmlab.telemetry.domains.neighbours import described

_LEFT_FREE = 10
"""Beside other guests this part of the host's memory stays free: they grow, and the page cache is theirs too."""

_LOWER_WEIGHT_WORDS = "the lab's guests together have half the usual CPU weight"
_USUAL_WEIGHT_WORDS = "in the host's own libvirt its guests have the same CPU weight as they have"


def left_free_bytes(host: HostFacts, allow: Allow) -> int:
    """Bytes of the host's memory that the lab may not plan with; 0 where no other guest runs, or all is allowed."""
    return 0 if allow.equal_weight or not host.neighbours else host.memory_total_bytes // _LEFT_FREE


def neighbour_words(host: HostFacts, allow: Allow, *, own_weight: bool) -> Iterator[str]:
    """Who runs here beside the lab, and what it leaves them; nothing where no other guest runs.

    Without `own_weight` the lab's guests have no cgroup that is theirs alone.
    """
    if not host.neighbours:
        return
    yield f"this host runs {described(host.neighbours)}"
    if allow.equal_weight:
        yield "the lab takes CPU and memory on equal terms with them, as was asked for (allow.equal_weight)"
    else:
        weight = _LOWER_WEIGHT_WORDS if own_weight else _USUAL_WEIGHT_WORDS
        yield f"the lab leaves {format_bytes(left_free_bytes(host, allow))} free, and {weight}"
