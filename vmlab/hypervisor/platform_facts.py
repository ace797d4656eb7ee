"""Facts on libvirt, QEMU and KVM of this host. They do not change while a lab runs, so each is read once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lxml import etree

from vmlab.hypervisor import frozen_guest, kvm_probe
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.kvm_probe import EMULATOR
from vmlab.hypervisor.libvirt.calls import OPEN, call
from vmlab.hypervisor.libvirt.domain_xml import Platform
from vmlab.model.errors import DeadlineExceeded, HypervisorError
from vmlab.model.places import cache_folder
from vmlab.model.run import Accelerator
from vmlab.model.visible import visible_line

_LOG = logging.getLogger(__name__)


class PlatformFacts:
    """Asks `connection`, which gives libvirt's connection; `kernel` is what KVM is probed with, when there is one.
    `kind` is the scenario's word for the hypervisor.
    """

    def __init__(
        self, connection: Callable[[], Any], notice: Callable[[str], None], kernel: Path | None, kind: str
    ) -> None:
        self.kernel = kernel
        self._kind = kind
        self._connection = connection
        self._notice = notice
        self._accelerator: Accelerator | None = None
        self._emulated = ""
        self._platform: Platform | None = None
        self._reaching: Platform | None = None
        self._making = asyncio.Lock()
        self._facts: dict[str, Any] | None = None

    async def accelerator(self) -> Accelerator:
        """``kvm`` where the guests' own kernel boots under it, else ``tcg``."""
        if self._accelerator is None:
            if self.kernel is None:
                raise HypervisorError("no kernel to probe KVM with: give one, or create guests first")
            self._accelerator = await self._probe(self.kernel)
        return self._accelerator

    async def _probe(self, kernel: Path) -> Accelerator:
        try:
            answer = await call("probing KVM", kvm_probe.DEADLINE, kvm_probe.probe_kvm, kernel, cache_folder())
        except DeadlineExceeded as late:
            answer = kvm_probe.Answer(False, str(late))
        self._emulated = "" if answer.runs else answer.sentence
        if answer.seen:
            _LOG.warning("KVM is not used: %s", visible_line(answer.seen))
        return answer.accelerator

    def say_emulated(self) -> None:
        """Give the notice that guests are emulated, and why, once; for a run that has guests."""
        if self._emulated:
            self._notice(self._emulated)
            self._emulated = ""

    async def facts(self) -> dict[str, Any]:
        """libvirt's and QEMU's versions, accelerator, machine type, CPU model: JSON values of the caller's own."""
        if self._facts is None:
            self._facts = await self._ask()
        return dict(self._facts)

    async def _ask(self) -> dict[str, Any]:
        platform = await self.platform()
        # libvirt may have to query QEMU again for this, which takes seconds on a slow host.
        qemu, own = await call("libvirt version", OPEN, self._versions)
        return {
            "hypervisor": self._kind,
            "libvirt": version_words(own),
            "qemu": version_words(qemu),
            "accelerator": platform.accelerator,
            "machine_type": platform.machine_type,
            "cpu_model": "host-passthrough" if platform.accelerator == "kvm" else "maximum",
            "host_cpu_flags": frozen_guest.host_cpu_flags() if platform.accelerator == "kvm" else None,
        }

    def _versions(self) -> tuple[int, int]:
        connection = self._connection()
        return connection.getVersion(), connection.getLibVersion()

    async def platform(self) -> Platform:
        """The platform that guests are defined for."""
        if self._platform is None:
            accelerator = await self.accelerator()
            machine = await call("domain capabilities", OPEN, self._machine_type, accelerator)
            self._platform = Platform(accelerator, EMULATOR, machine)
        return self._platform

    async def platform_for(self, spec: DomainSpec) -> Platform:
        """That of one guest: where its disk is in a pool, its QEMU reaches the host's network; see `rbd`.

        Raises HypervisorError, OSError.
        """
        platform = await self.platform()
        if spec.resources.pool is None:
            return platform
        async with self._making:
            if self._reaching is None:
                from vmlab.hypervisor.ceph.rbd import provide_emulator

                making = "making a QEMU that reaches the host's network"
                emulator = await call(making, OPEN, provide_emulator, platform.emulator)
                self._reaching = replace(platform, emulator=emulator)
        return self._reaching

    def _machine_type(self, accelerator: Accelerator) -> str:
        """The versioned name behind QEMU's alias ``q35``, which is the newest one it has."""
        kind = "kvm" if accelerator == "kvm" else "qemu"
        text: str = self._connection().getDomainCapabilities(EMULATOR, "x86_64", "q35", kind)
        return str(etree.fromstring(text).findtext("machine"))


def version_words(number: int) -> str:
    """libvirt's packed number, such as 7002022, as ``7.2.22``."""
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
