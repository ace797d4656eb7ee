"""Gives guests that ask by DHCP the addresses that the lab has for them: dnsmasq on the lab's bridge."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Mapping

from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.model.errors import DeadlineExceeded, HypervisorError, HypervisorUnavailable
from vmlab.model.names import BRIDGE, NETWORK
from vmlab.system.packages import installing

PROGRAM = "dnsmasq"
_READY = b"started"
_BEGIN = 20.0
_END = 5.0


def require_dhcp() -> None:
    """Raises HypervisorUnavailable where this host has no DHCP server for guests of added images."""
    if shutil.which(PROGRAM) is None:
        raise HypervisorUnavailable(
            f"guests of added images get their addresses from {PROGRAM}, which is missing",
            remedy=installing("dnsmasq-base"),
        )


def arguments(addresses: Mapping[str, str]) -> list[str]:
    """dnsmasq's command line: DHCP alone, for these MAC addresses alone, on the bridge alone; no file is used.

    Guests get neither a router nor a name server, for there is none.
    """
    return [
        *(PROGRAM, "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--leasefile-ro"),
        *("--user=root", "--group=root", "--log-facility=-", "--quiet-dhcp"),
        *("--port=0", f"--interface={BRIDGE}", "--except-interface=lo", "--bind-interfaces"),
        f"--dhcp-range={NETWORK.network_address},static,{NETWORK.netmask},infinite",
        *("--dhcp-authoritative", "--dhcp-option=option:router", "--dhcp-option=option:dns-server"),
        *(f"--dhcp-host={mac},{address},infinite" for mac, address in addresses.items()),
    ]


class AddressServer:
    """One dnsmasq, while there are guests that need it; it dies with the lab's PID namespace."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._addresses: dict[str, str] = {}
        self._reading: asyncio.Task[None] | None = None

    async def serve(self, addresses: Mapping[str, str]) -> None:
        """Give these addresses from now on, by MAC address, beside those of earlier calls; it listens on return.

        Raises HypervisorUnavailable and HypervisorError, DeadlineExceeded where it does not begin.
        """
        if addresses.items() <= self._addresses.items():
            return
        require_isolation()
        require_dhcp()
        await self.stop()
        self._addresses |= addresses
        self._process = await asyncio.create_subprocess_exec(
            *arguments(self._addresses),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_BEGIN):
                await self._begun(self._process)
        except TimeoutError as error:
            raise DeadlineExceeded(f"{PROGRAM} did not begin within {_BEGIN:.0f} s") from error

    async def _begun(self, process: asyncio.subprocess.Process) -> None:
        """Return when it says that it has started, which it does when its socket is open."""
        assert process.stderr is not None
        last = b""
        while line := await process.stderr.readline():
            if _READY in line:
                # What it says later is read away, so that it never waits for a reader.
                self._reading = asyncio.ensure_future(_read_away(process.stderr))
                return
            last = line
        raise HypervisorError(f"{PROGRAM} ended: {last.decode('utf-8', 'replace').strip() or 'it said nothing'}")

    async def stop(self) -> None:
        """End it, if it runs."""
        process, self._process = self._process, None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END):
                await process.wait()


async def _read_away(stream: asyncio.StreamReader) -> None:
    while await stream.readline():
        pass
