"""The images that users have added to this host, among the facts that a plan is made from."""

from __future__ import annotations

from dataclasses import replace

from vmlab.guests.image.added import disk_sizes
from vmlab.plan.terms import HostFacts


def with_images(host: HostFacts) -> HostFacts:
    """The host with the added images that are there now."""
    return replace(host, images=disk_sizes())
