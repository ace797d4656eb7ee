"""The tools that an engineer would otherwise run beside a test, each as a command that watches the host."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import os
import shutil
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SADC = Path("/usr/lib/sysstat/sadc")
PCP = Path("/usr/lib/pcp/bin")
PCP_METRICS = [
    *("kernel.all.cpu", "kernel.percpu.cpu", "kernel.all.pressure", "kernel.all.pswitch", "kernel.all.load"),
    *("disk.dev", "disk.all", "mem.util", "mem.ksm", "mem.physmem", "mem.freemem", "swap", "network.interface"),
]
_PCP_GUESTS = [
    *("kvm", "libvirt.domstats", "proc.psinfo.utime", "proc.psinfo.stime", "proc.psinfo.rss"),
    *("proc.io.read_bytes", "proc.io.write_bytes"),
]


class NotHere(Exception):
    """The tool is not installed, or cannot do what is asked; the text says which."""


@contextmanager
def running(command: list[str], *, env: dict[str, str] | None = None, terminal: bool = False) -> Iterator[int]:
    """The pid of `command` while it runs; in a terminal that is read all the time, where it wants one."""
    if shutil.which(command[0]) is None:
        raise NotHere(f"{Path(command[0]).name} is not installed")
    master = slave = subprocess.DEVNULL
    if terminal:
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        threading.Thread(target=_drain, args=(master,), daemon=True).start()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env={**os.environ, **(env or {})}, start_new_session=True
    )
    try:
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if terminal:
            os.close(slave)


def _drain(master: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(master, 65536):
            pass
    os.close(master)


@contextmanager
def glances(interval: float, folder: Path) -> Iterator[list[int]]:
    """The ordinary full screen."""
    command = ["glances", "-t", f"{interval:g}", "--disable-check-update"]
    with running(command, env={"TERM": "xterm-256color"}, terminal=True) as pid:
        yield [pid]


@contextmanager
def btop(interval: float, folder: Path) -> Iterator[list[int]]:
    """The ordinary full screen."""
    (folder / "btop").mkdir(exist_ok=True)
    (folder / "btop/btop.conf").write_text(f"update_ms = {round(interval * 1000)}\n")
    env = {"TERM": "xterm-256color", "XDG_CONFIG_HOME": str(folder)}
    with running(["btop", "--utf-force"], env=env, terminal=True) as pid:
        yield [pid]


@contextmanager
def sadc(interval: float, folder: Path) -> Iterator[list[int]]:
    """``sadc -S ALL`` into a file; whole seconds only."""
    if interval != int(interval):
        raise NotHere("sadc knows whole seconds only")
    with running([str(SADC), "-S", "ALL", f"{interval:g}", str(folder / "sadc")]) as pid:
        yield [pid]


@contextmanager
def node_exporter(interval: float, folder: Path) -> Iterator[list[int]]:
    """With its ordinary collectors, scraped once an interval; the scraper's own CPU is not counted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = threading.Event()
    with running(["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}"]) as pid:
        scraper = threading.Thread(target=_scrape, args=(port, interval, done), daemon=True)
        scraper.start()
        try:
            yield [pid]
        finally:
            done.set()
            scraper.join(10)


def _scrape(port: int, interval: float, done: threading.Event) -> None:
    while not done.wait(interval):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/metrics")
            connection.getresponse().read()
        connection.close()


@contextmanager
def pcp(interval: float, folder: Path, asked: Sequence[str] = PCP_METRICS) -> Iterator[list[int]]:
    """pmcd with its ordinary agents, and pmlogger with those of the metrics `asked` that have values here."""
    if not (PCP / "pmcd").exists():
        raise NotHere("pmcd is not installed")
    _build_pcp_names()
    home = folder / "pcp"
    home.mkdir(exist_ok=True)
    env = {"PMCD_SOCKET": str(home / "socket"), "PMCD_PORT": "44399"}
    pmcd = [str(PCP / "pmcd"), "-f", "-A", "-s", env["PMCD_SOCKET"], "-l", str(home / "pmcd.log")]
    with running(pmcd, env=env) as daemon:
        metrics = _pcp_metrics(env, asked)
        (home / "config").write_text(f"log mandatory on {interval * 1000:.0f} msec {{\n" + "\n".join(metrics) + "\n}\n")
        logger = [
            str(PCP / "pmlogger"), "-h", "unix:", "-c", str(home / "config"), "-l", str(home / "pmlogger.log"),
            str(home / f"archive-{time.monotonic_ns()}"),
        ]  # fmt: skip
        with running(logger, env=env) as writer:
            yield [daemon, writer]


@contextmanager
def pcp_with_guests(interval: float, folder: Path) -> Iterator[list[int]]:
    """The same with what its agents for KVM and libvirt have, where they are there, and all processes' figures.

    Debian 12 has no agent for libvirt; there the processes' figures are all that PCP knows of a guest.
    """
    with pcp(interval, folder, (*PCP_METRICS, *_PCP_GUESTS)) as pids:
        kept = (folder / "pcp/config").read_text().split()
        counts = (
            f"{agent} {sum(name.startswith(f'{agent}.') for name in kept)}" for agent in ("kvm", "libvirt", "proc")
        )
        print(f"metrics that PCP keeps of its agents: {', '.join(counts)}")
        yield pids


@contextmanager
def virsh(interval: float, _folder: Path) -> Iterator[list[int]]:
    """One virsh that asks for the statistics of all domains each time, read only."""
    if shutil.which("virsh") is None:
        raise NotHere("virsh is not installed")
    command = ["virsh", "--readonly", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        ended = threading.Event()
        asking = threading.Thread(target=_ask_each_time, args=(process, interval, ended), daemon=True)
        asking.start()
        try:
            yield [process.pid]
        finally:
            ended.set()
            asking.join()
            process.terminate()


def _ask_each_time(virsh: subprocess.Popen[str], interval: float, ended: threading.Event) -> None:
    assert virsh.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        while not ended.wait(interval):
            virsh.stdin.write("domstats\n")
            virsh.stdin.flush()


def _build_pcp_names() -> None:
    """Debian's package leaves this to the init script of pmcd."""
    if not Path("/var/lib/pcp/pmns/root").exists():
        subprocess.run([". /etc/pcp.env && exec ./Rebuild -u"], shell=True, cwd="/var/lib/pcp/pmns", check=True)  # noqa: S602


def _pcp_metrics(env: dict[str, str], asked: Sequence[str]) -> list[str]:
    """Without derived metrics (PMID 511), which pmlogger 6.0 answers with a dump each time."""
    for _ in range(50):
        said = subprocess.run(
            ["pminfo", "-h", "unix:", "-mf", *asked], env={**os.environ, **env}, capture_output=True, text=True,
            check=False,
        ).stdout  # fmt: skip
        blocks = [block.strip() for block in said.split("\n\n")]
        found = [
            block.split()[0]
            for block in blocks
            if "PMID: 511" not in block and (" value " in block or "inst [" in block)
        ]
        if found:
            return found
        time.sleep(0.1)
    raise NotHere("pmcd does not answer")


RIVALS = {"PCP": pcp, "sadc -S ALL": sadc, "btop": btop, "node_exporter": node_exporter, "glances": glances}
