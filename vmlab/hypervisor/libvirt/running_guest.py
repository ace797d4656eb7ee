"""Guests that run: what each was started as, and what it shows of its attributes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vmlab.hypervisor.contract import BootImage, DomainSpec
from vmlab.hypervisor.levers.guest_lever import RunningQemu, proofs
from vmlab.hypervisor.libvirt.calls import call, qmp
from vmlab.hypervisor.libvirt.domain_xml import DomainFiles
from vmlab.hypervisor.libvirt.libvirt_root import Places
from vmlab.model.errors import HypervisorError
from vmlab.model.results import LeverProof
from vmlab.system.host_size import last_cpus, read_cores

_ASK = 10.0


@dataclass(frozen=True, slots=True)
class StartedGuest:
    """A guest that was started: from what, as what, with which files, and its description for libvirt."""

    image: BootImage
    spec: DomainSpec
    files: DomainFiles
    xml: str

    @property
    def chain(self) -> list[Path]:
        """The files of its disk, the first one on top."""
        files = (self.files.overlay, self.files.frozen, self.image.disk)
        return [file for file in files if file is not None]


@dataclass(frozen=True, slots=True)
class LeverProving:
    """Proves attributes of guests, whose domains `lookup` gives by their names.

    `ordered_cpus` is how many CPUs an ordered host has; None where it is the host as it is.
    """

    places: Places
    lookup: Callable[[str], Any]
    ordered_cpus: int | None

    async def prove(
        self, specs: Sequence[DomainSpec], keys: Collection[str], inside: Mapping[str, Mapping[str, str]]
    ) -> list[LeverProof]:
        """For each guest, see `guest_lever.proofs`, and for `inside` `contract.Hypervisor.prove_levers`."""
        what = "proving its settings"
        asked = ((spec, keys, inside.get(spec.name, {})) for spec in specs)
        found = await asyncio.gather(*(call(f"{one[0].name}: {what}", _ASK, self._proofs, *one) for one in asked))
        return [proof for proofs in found for proof in proofs]

    def _proofs(self, spec: DomainSpec, keys: Collection[str], inside: Mapping[str, str]) -> list[LeverProof]:
        domain = self.lookup(spec.name)
        try:
            qemu = RunningQemu(
                spec.guest,
                spec.tile,
                spec.resources,
                self.places.proc / str(self.places.pid_of(domain.name())),
                partial(qmp, domain),
                described=partial(domain.XMLDesc, 0),
                cpus=frozenset(cpu for core in last_cpus(read_cores(), self.ordered_cpus) for cpu in core),
                inside=inside,
            )
            return proofs(qemu, keys)
        except (OSError, KeyError, ValueError) as error:
            raise HypervisorError(f"{spec.name}: cannot look into its QEMU: {error}") from error
