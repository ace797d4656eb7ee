"""What a plan is made from beside the host's size: added images, assets, and what the kernel lacks for networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vmlab.guests.image.added import disk_sizes, lacked_programs
from vmlab.lab.provision.host_networks import LACKING
from vmlab.plan.terms import HostFacts
from vmlab.workloads.assets import read_assets


def with_images(host: HostFacts, assets: Sequence[str] = ()) -> HostFacts:
    """The host with the added images that are there now, what its kernel lacks, and `assets` as they were typed.

    Raises what `read_assets` raises.
    """
    return replace(
        host,
        images=disk_sizes(),
        lacked_programs=lacked_programs(),
        assets=read_assets(assets),
        lacking=LACKING,
    )
