"""The plan of a scenario on this host, as the console and every command make it, and what its kernel lacks for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from vmlab.guests.image import added, catalog
from vmlab.guests.image.added import lacked_programs, windows_images
from vmlab.guests.image.layers import current_bytes, lacking_packages
from vmlab.hypervisor.levers.qemu_offers import (
    lacking_cpu,
    lacking_io,
    lacking_long_mode,
    lacking_machine,
    lacking_vhost,
)
from vmlab.model.places import runs_folder
from vmlab.model.run import Accelerator
from vmlab.model.scenarios.guest import LAB_IMAGE
from vmlab.plan.host_lacks import LABS_CPU
from vmlab.plan.hosting import read_host_facts
from vmlab.plan.image_layers import package_word
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.system.kvm_device import may_work
from vmlab.workloads.assets import read_assets

_NETWORKS = ("vxlan", "nat", "bandwidth")
_CPU = "cpu "
_PACKAGE = package_word("")
_PROBE = ("-m", "vmlab.hypervisor.overlay_network.network_probe")
_ENOUGH = 60.0


class Lacking(Mapping[str, str]):
    """The reasons, by ``vxlan``, ``nat``, ``bandwidth`` of networks, and ``native``, ``io_uring``, ``vhost``,
    ``machine pc``, ``firmware uefi`` of QEMU.

    Those of processors are by their value, ``cpu EPYC -svm``, with `LABS_CPU` before it why vmlab's own image does not
    start on one, those of Debian's packages by their name, ``package
    redis-server``. Empty until somebody asks; users who may not try find no network lacking.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._asked: set[str] = set()
        """Processors and packages by their names, and the groups whose members are found out together."""

    @property
    def found(self) -> dict[str, str]:
        """What is known already; nothing is tried for it."""
        return dict(self._known)

    def ask(self, names: Iterable[str]) -> None:
        """Find out about all of these packages at once."""
        new = [name for name in names if name not in self._asked]
        self._asked.update(new)
        reasons = lacking_packages([name.removeprefix(_PACKAGE) for name in new]) if new else {}
        self._known |= {package_word(package): why for package, why in reasons.items()}

    def _once(self, what: str, find: Callable[[], Mapping[str, str]]) -> None:
        if what not in self._asked:
            self._asked.add(what)
            self._known |= find()

    def __getitem__(self, name: str) -> str:
        """The reason why there is no such thing here. Raises KeyError where there is."""
        if name.startswith(_PACKAGE):
            self.ask([name])
        elif name.startswith(_CPU):
            self._once(name, partial(_lacking_processor, name))
        elif name in _NETWORKS:
            self._once("networks", _lacking_networks)
        else:
            self._once("QEMU", _lacking_qemu)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        """All that is lacking."""
        self._once("networks", _lacking_networks)
        self._once("QEMU", _lacking_qemu)
        return iter(self.found)

    def __len__(self) -> int:
        """How much is lacking."""
        return len(list(iter(self)))

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether it is the same object: a comparison of two hosts must try nothing."""
        return self is other


def _lacking_processor(name: str) -> dict[str, str]:
    accelerator: Accelerator = "kvm" if may_work() else "tcg"
    of_labs = name.startswith(LABS_CPU)
    model = name.removeprefix(LABS_CPU if of_labs else _CPU)
    why = lacking_long_mode(model, accelerator) if of_labs else lacking_cpu(model, accelerator)
    return {} if why is None else {name: why}


def _lacking_qemu() -> dict[str, str]:
    return {**lacking_io(), **lacking_vhost(), **lacking_machine()}


def _lacking_networks() -> dict[str, str]:
    """What the probe says; nothing where it may not try or says nothing, so that a run finds out itself."""
    argv = [sys.executable, *_PROBE]
    try:
        if os.geteuid() != 0:
            return {}
        probe = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ENOUGH, check=True)
        said: dict[str, str] = json.loads(probe.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return said


LACKING = Lacking()
"""Of this host; a process tries once."""


def prepare_run(file: ScenarioFile, overrides: Overrides, *, elsewhere: bool = False) -> tuple[Plan, HostFacts]:
    """The plan, and the host that it was made for and must fit into (`plan.hosting.check_fit`).

    The host has its size as of now, the added images, what its kernel lacks for networks, and the overrides' assets.
    For a run `elsewhere`, on a fleet, it lacks nothing: each host judges by itself what guests can have there. Raises
    what `make_plan` and `read_assets` raise.
    """
    host = host_for_plans(overrides.assets)
    if elsewhere:
        host = replace(host, lacking={})
    return make_plan(file, overrides, host), host


def host_for_plans(assets: Sequence[str] = ()) -> HostFacts:
    """The host as it is now, with these assets of the user's. Raises what `read_assets` raises."""
    return replace(
        read_host_facts(runs_folder()),
        images=_disk_sizes(),
        lacked_programs=lacked_programs(),
        windows_images=windows_images(),
        assets=read_assets(assets),
        lacking=LACKING,
        layers={" ".join(packages): taken for packages, taken in current_bytes().items() if packages},
    )


def _disk_sizes() -> dict[str, int]:
    """As `HostFacts.images`; the lab's image is left out where it was not built yet."""
    own = catalog.disk_size()
    return added.disk_sizes() | ({} if own is None else {LAB_IMAGE: own})


def with_repeats_here(file: ScenarioFile, overrides: Overrides) -> Overrides:
    """As `with_enough_repeats`, where claims that this host and the size cannot answer take no repeats.

    Raises what that and `prepare_run` raise.
    """
    # Imported late: the console plans without the analysis, which loads statistics.
    from vmlab.analysis.comparison.repeats_needed import with_enough_repeats

    asked = with_enough_repeats(overrides, file.scenario)
    if asked.looks is None or overrides.looks is not None:
        return asked
    plan, _ = prepare_run(file, asked)
    return with_enough_repeats(overrides, file.scenario, plan.unanswerable)
