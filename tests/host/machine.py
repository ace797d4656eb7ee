"""The host as a virtual machine that is emulated: QEMU, its two disks, and SSH on this machine's loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from pathlib import Path
from typing import Any

import asyncssh

from tests.host.disks import Root, overlay

_BOOT_SECONDS = 600.0
_MEMORY_MIB = 8192


class DidNotBoot(Exception):
    """The host did not come so far that a command could be run in it."""


class Machine:
    """One host, from its first boot to its end; use it as an asynchronous context.

    One virtual CPU: with two, the kernel of such a host hung twice, waiting for an interrupt.
    """

    def __init__(self, root: Root, data: Path, key: asyncssh.SSHKey, scratch: Path) -> None:
        self._root, self._key, self._scratch = root, key, scratch
        self._disks = {
            "root": overlay(root.disk, "raw", scratch / "root.0"),
            "data": overlay(data, "raw", scratch / "data.0"),
        }
        self._layers = 0
        self._qemu: asyncio.subprocess.Process | None = None
        self._ssh: asyncssh.SSHClientConnection | None = None

    async def __aenter__(self) -> Machine:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.end()

    @property
    def console(self) -> Path:
        """What the host's kernel and its systemd said."""
        return self._scratch / "console.log"

    async def boot(self) -> float:
        """Start it and wait for SSH and its services; the seconds that this took. Raises DidNotBoot."""
        began = time.monotonic()
        port = _free_port()
        # The kernel ends QEMU when this process dies, however it dies.
        self._qemu = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "--", *self._command_line(port)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_BOOT_SECONDS):
                self._ssh = await self._connect(port)
                await self._ssh.run("systemctl is-system-running --wait")
        except TimeoutError as late:
            raise DidNotBoot(f"no SSH and no services after {_BOOT_SECONDS:.0f} s; see {self.console}") from late
        except (OSError, asyncssh.Error) as broken:
            raise DidNotBoot(f"{broken}; see {self.console}") from broken
        return time.monotonic() - began

    def _command_line(self, port: int) -> list[str]:
        argv = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512"]
        argv += ["-cpu", "EPYC,+svm,+npt", "-smp", "1", "-m", str(_MEMORY_MIB), "-nodefaults", "-display", "none"]
        argv += ["-kernel", str(self._root.kernel), "-initrd", str(self._root.initrd)]
        argv += ["-append", "root=/dev/vda rw console=ttyS0 mitigations=off"]
        for name, disk in self._disks.items():
            argv += ["-drive", f"id={name},file={disk},format=qcow2,if=virtio,cache=unsafe"]
        argv += ["-chardev", f"file,id=console,path={self.console},append=on", "-serial", "chardev:console"]
        # restrict: the host reaches nobody, it is only reached.
        argv += ["-netdev", f"user,id=lan,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"]
        argv += ["-device", "virtio-net-pci,netdev=lan,romfile=", "-device", "virtio-rng-pci"]
        return [*argv, "-qmp", f"unix:{self._scratch / 'qmp'},server=on,wait=off"]

    async def _connect(self, port: int) -> asyncssh.SSHClientConnection:
        assert self._qemu is not None
        while self._qemu.returncode is None:
            with contextlib.suppress(OSError, asyncssh.Error):
                return await asyncssh.connect(
                    "127.0.0.1",
                    port,
                    username="root",
                    client_keys=[self._key],
                    known_hosts=None,
                    config=None,
                    connect_timeout=60,
                    login_timeout=120,
                )
            await asyncio.sleep(2)
        assert self._qemu.stderr is not None
        said = (await self._qemu.stderr.read()).decode(errors="replace").strip()
        raise DidNotBoot(f"QEMU ended: {said}")

    async def run(self, command: str, output: Path, deadline: float) -> int | None:
        """Run a shell command in the host, its output appended to the file `output`; None when it broke off.

        Raises TimeoutError after `deadline` seconds; the command may still run then.
        """
        assert self._ssh is not None
        with output.open("ab") as file:
            async with asyncio.timeout(deadline):
                try:
                    done = await self._ssh.run(command, stdout=file, stderr=asyncssh.STDOUT)
                except (OSError, asyncssh.Error) as broken:
                    file.write(f"\nthe connection broke: {broken}\n".encode())
                    return None
        return done.returncode

    async def keep(self) -> None:
        """Keep what is on the disks now: what is written from here on is gone when it is booted anew."""
        self._layers += 1
        for name in self._disks:
            layer = str(self._scratch / f"{name}.{self._layers}")
            await self._qmp("blockdev-snapshot-sync", {"device": name, "snapshot-file": layer, "format": "qcow2"})

    async def boot_anew(self) -> float:
        """Pull the plug and boot from what `keep` kept, or from the disks as they are. Raises DidNotBoot."""
        await self.end()
        for name in self._disks if self._layers else ():
            fresh = self._scratch / f"{name}.{self._layers}.{time.monotonic_ns()}"
            self._disks[name] = overlay(self._scratch / f"{name}.{self._layers - 1}", "qcow2", fresh)
        return await self.boot()

    async def _qmp(self, command: str, arguments: dict[str, Any]) -> None:
        reader, writer = await asyncio.open_unix_connection(self._scratch / "qmp")
        await reader.readline()
        for name, values in (("qmp_capabilities", {}), (command, arguments)):
            writer.write(json.dumps({"execute": name, "arguments": values}).encode())
            while "return" not in (answer := json.loads(await reader.readline())):
                if "error" in answer:
                    raise RuntimeError(f"{name}: {answer['error']['desc']}")
        writer.close()
        await writer.wait_closed()

    async def end(self) -> None:
        """Pull the plug."""
        if self._ssh is not None:
            self._ssh.abort()
            self._ssh = None
        if self._qemu is not None:
            with contextlib.suppress(ProcessLookupError):
                self._qemu.kill()
            await self._qemu.communicate()
            self._qemu = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
