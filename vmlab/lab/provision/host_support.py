"""The plan of a scenario on this host, as the console and every command make it."""

from __future__ import annotations

from dataclasses import replace

from vmlab.guests.image.added import disk_sizes, lacked_programs, windows_images
from vmlab.lab.provision.host_networks import LACKING
from vmlab.model.places import runs_folder
from vmlab.plan.planning import make_plan, read_host_facts
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.workloads.assets import read_assets


def prepare_run(file: ScenarioFile, overrides: Overrides) -> tuple[Plan, HostFacts]:
    """The plan, and the host that it was made for and must fit into (`plan.hosting.check_fit`).

    The host has its size as of now, the added images, what its kernel lacks for networks, and the overrides' assets.
    Raises what `make_plan` and `read_assets` raise.
    """
    host = replace(
        read_host_facts(runs_folder()),
        images=disk_sizes(),
        lacked_programs=lacked_programs(),
        windows_images=windows_images(),
        assets=read_assets(overrides.assets),
        lacking=LACKING,
    )
    return make_plan(file, overrides, host), host
