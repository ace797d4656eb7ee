"""Hypervisors on one machine: a network, PID, mount and time namespace each, with an SSH server of its own in it.

They are joined by a bridge that exists in a namespace only, so that nothing of them is on the machine's own network.
Each has cache, state and runtime folders of its own; the guest image is the machine's, and snapshots are linked.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from vmlab.model.places import cache_folder

SSHD = Path("/usr/sbin/sshd")
_NETWORK = "10.213.7"
_VMLAB = Path(sys.executable).with_name("vmlab")
_PREPARED = """
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/vmlab
{shared}
until ip -4 addr show | grep -q {address}; do sleep 0.05; done
exec {sshd} -D -e -f {config}
"""


@dataclass
class NamespacedHost:
    """A host: the process that holds its namespaces, its address, and its folder."""

    name: str
    address: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    ahead: int = 0
    """How far its monotonic clock is ahead of the machine's, in seconds."""
    bare: bool = False
    """Whether it begins without the image and without snapshots."""

    @property
    def first(self) -> int:
        """The process that is PID 1 in it: its SSH server."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in it, with the environment that its vmlab has."""
        at = ["nsenter", f"--target={self.first}", "--net", "--pid", "--mount", "env", *self.environment()]
        return subprocess.run([*at, *words], check=check, capture_output=True, text=True)

    def environment(self) -> list[str]:
        """Where its vmlab keeps things."""
        return [f"XDG_CACHE_HOME={self.folder}/cache", f"XDG_STATE_HOME={self.folder}/state", "HOME=/root"]

    def processes(self, *words: str) -> list[int]:
        """The processes in it whose command line has all of these words, by the machine's own numbers."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                number = int(entry.name)
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if all(word in line for word in words) and self._is_within(number):
                    found.append(number)
        return found

    def runner(self) -> int:
        """The runner of the lab that it has now.

        What a runner starts has its command line, too, until it becomes another program: such a process is none.
        """
        found = self.processes("vmlab.lab.run.runner")
        (runner,) = [number for number in found if _parent(number) not in found]
        return runner

    def _is_within(self, number: int) -> bool:
        while number > 1:
            if number == self.first:
                return True
            number = _parent(number)
        return False

    def cut(self, *, cut: bool = True) -> None:
        """Cut its cable, or join it again."""
        self.run("ip", "link", "set", "eth0", "down" if cut else "up")


@dataclass
class NamespacedFleet:
    """Hosts, and the namespace of the controller. `run` there what would be typed on the controller."""

    folder: Path
    hosts: list[NamespacedHost] = field(default_factory=list)
    keepers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def _controller(self) -> int:
        return self.keepers[1].pid

    @property
    def names(self) -> str:
        """All hosts, as --hosts takes them."""
        return ",".join(host.name for host in self.hosts)

    def environment(self) -> dict[str, str]:
        """Of the controller."""
        place = self.folder / "controller"
        return {
            **os.environ,
            "XDG_CACHE_HOME": str(cache_folder().parent),
            "XDG_STATE_HOME": str(place / "state"),
            "XDG_CONFIG_HOME": str(place / "config"),
            "VMLAB_RUNTIME_DIR": str(place / "run"),
        }

    @property
    def vmlab_program(self) -> str:
        """The program that hosts and controller run."""
        return str(_VMLAB)

    def command(self, *words: str) -> list[str]:
        """The command line of vmlab on the controller."""
        return ["nsenter", f"--target={self._controller}", "--net", str(_VMLAB), *words]

    def vmlab(self, *words: str, check: bool = True, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run vmlab on the controller to its end."""
        done = subprocess.run(
            self.command(*words), env=self.environment(), capture_output=True, text=True, timeout=timeout, check=False
        )
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start vmlab on the controller."""
        return subprocess.Popen(
            self.command(*words),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def runs(self) -> Path:
        """The runs of the controller."""
        return self.folder / "controller/state/vmlab/runs"


def _parent(number: int) -> int:
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])


@contextlib.contextmanager
def namespaced_fleet(
    folder: Path, count: int = 3, *, waiting: str = "", ahead: Sequence[int] = (), bare: bool = False
) -> Iterator[NamespacedFleet]:
    """A fleet of hosts hv1, hv2, … in `folder`; nothing of it is left afterwards but the folder.

    `ahead` has for each how far its monotonic clock is ahead of the machine's, in seconds. Hosts that are `bare` have
    neither image nor snapshots.
    """
    fleet = NamespacedFleet(folder)
    try:
        for _ in ("switch", "controller"):
            fleet.keepers.append(subprocess.Popen(["unshare", "--net", "sleep", "infinity"]))
        _await_namespaces(fleet.keepers)
        _in(fleet.keepers[0].pid, "ip link add br0 type bridge", "ip link set br0 up")
        _join(fleet.keepers[0].pid, fleet.keepers[1].pid, "c0", f"{_NETWORK}.254")
        key = asyncssh.generate_private_key("ssh-ed25519")
        (folder / "controller/config/vmlab").mkdir(parents=True)
        (folder / "controller/run").mkdir()
        key.write_private_key(folder / "controller/key")
        (folder / "controller/key").chmod(0o600)
        known, entries = [], []
        for number in range(1, count + 1):
            host = NamespacedHost(f"hv{number}", f"{_NETWORK}.{number}", folder / f"hv{number}")
            host.ahead, host.bare = ahead[number - 1] if ahead else 0, bare
            fleet.hosts.append(host)
            known.append(_made(host, key))
            host.process = _booted(host)
            _join(fleet.keepers[0].pid, host.first, f"h{number}", host.address)
            entries.append(
                f'[hosts.{host.name}]\naddress = "{host.address}"\nkey = "{folder}/controller/key"\n'
                f'known_hosts = "{folder}/controller/known_hosts"\nvmlab = "{_VMLAB}"\n'
            )
        (folder / "controller/known_hosts").write_text("".join(known))
        (folder / "controller/config/vmlab/hosts.toml").write_text("\n".join(entries) + waiting)
        for host in fleet.hosts:
            _await_server(host)
        yield fleet
    finally:
        for process in [*(host.process for host in fleet.hosts), *fleet.keepers]:
            if process is not None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def reboot(fleet: NamespacedFleet, host: NamespacedHost) -> None:
    """Kill all that runs on a host at once, as a power cut does, and start it again with its disks."""
    assert host.process is not None
    host.process.kill()
    host.process.wait()
    host.process = _booted(host)
    _join(fleet.keepers[0].pid, host.first, f"h{host.name[2:]}", host.address)
    _await_server(host)


def _made(host: NamespacedHost, key: asyncssh.SSHKey) -> str:
    """Make a host's folder; its line for known_hosts."""
    for name in ("cache/vmlab/images", "cache/vmlab/snapshots", "state/vmlab"):
        (host.folder / name).mkdir(parents=True)
    for name in ("libvirt",) if host.bare else ("snapshots", "libvirt"):
        source = cache_folder() / name
        if source.is_dir():
            linked = subprocess.run(["cp", "-al", f"{source}/.", str(host.folder / "cache/vmlab" / name)], check=False)
            if linked.returncode:
                subprocess.run(["cp", "-a", f"{source}/.", str(host.folder / "cache/vmlab" / name)], check=True)
    for file in cache_folder().iterdir():
        if file.is_file():
            (host.folder / "cache/vmlab" / file.name).write_bytes(file.read_bytes())
            (host.folder / "cache/vmlab" / file.name).chmod(file.stat().st_mode)
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    host_key.write_private_key(host.folder / "host_key")
    (host.folder / "host_key").chmod(0o600)
    key.write_public_key(host.folder / "authorized_keys")
    (host.folder / "authorized_keys").chmod(0o600)
    where = " ".join(host.environment())
    (host.folder / "sshd_config").write_text(
        f"Port 22\nListenAddress {host.address}\nHostKey {host.folder}/host_key\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {host.folder}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n"
        f"PermitRootLogin prohibit-password\nSetEnv {where}\n"
    )
    return f"{host.address} {host_key.export_public_key('openssh').decode()}"


def _booted(host: NamespacedHost) -> subprocess.Popen[bytes]:
    images, own = cache_folder() / "images", host.folder / "cache/vmlab/images"
    script = _PREPARED.format(
        shared="" if host.bare else f"mount --bind {shlex.quote(str(images))} {shlex.quote(str(own))}",
        address=host.address,
        sshd=SSHD,
        config=shlex.quote(str(host.folder / "sshd_config")),
    )
    spaces = ["--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
    spaces += ["--time", f"--monotonic={host.ahead}"]
    log = (host.folder / "sshd.log").open("ab")
    process = subprocess.Popen(["unshare", *spaces, "sh", "-euc", script], stdout=log, stderr=log)
    log.close()
    end = time.monotonic() + 10
    while not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        assert time.monotonic() < end and process.poll() is None, f"{host.name} does not start"
        time.sleep(0.02)
    return process


def _await_namespaces(keepers: Sequence[subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + 10
    own = Path("/proc/self/ns/net").readlink()
    while any(Path(f"/proc/{one.pid}/ns/net").readlink() == own for one in keepers):
        assert time.monotonic() < end, "no namespaces"
        time.sleep(0.02)


def _in(process: int, *commands: str) -> None:
    for command in commands:
        subprocess.run(["nsenter", f"--target={process}", "--net", *shlex.split(command)], check=True)


def _join(switch: int, process: int, port: str, address: str) -> None:
    """A cable from the bridge to a namespace, which has `address` on it."""
    _in(switch, f"ip link add {port} type veth peer name eth0 netns {process}")
    _in(switch, f"ip link set {port} master br0", f"ip link set {port} up")
    _in(process, f"ip addr add {address}/24 dev eth0", "ip link set eth0 up", "ip link set lo up")


def _await_server(host: NamespacedHost) -> None:
    end = time.monotonic() + 20
    while "Server listening" not in (host.folder / "sshd.log").read_text():
        assert time.monotonic() < end, (host.folder / "sshd.log").read_text()
        time.sleep(0.05)
