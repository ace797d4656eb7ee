"""Throughput of a network path: iperf3 from one place to another, both of them guests or the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.units import BitRate, Bytes, Seconds
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.reports.iperf3_report import (
    Iperf3Report,
    Sum,
    demand_arrived,
    demand_lasted,
    demand_time,
    parse_iperf3,
    rate_reached,
)
from vmlab.workloads.shell import Shell
from vmlab.workloads.verification import demand_equal, demand_success
from vmlab.workloads.workload_steps import (
    Client,
    Collected,
    Finished,
    Footprint,
    Workload,
    WorkloadContext,
    WorkloadParams,
)

_FIRST_PORT = 20_000
"""Above what the image's servers use and below the ports that the kernel gives to clients."""
_FOLDER = "/run/vmlab/iperf3"
"""Not with the programs, which each tile has for itself on the host: a server that is left must be found."""
_AROUND = {"kvm": 1.0, "tcg": 3.0}
"""Seconds for the server's start, the connections and the exchange of results; measured under TCG, a guess for KVM."""
_LATE_START = {"kvm": 0.2, "tcg": 0.6}
_TELL_ALL = ("sh", "-c", '"$@" || true', "iperf3")
"""iperf3 reports errors in its document; without one, or with an error in it, the workload fails."""
_WAIT_FOR_LISTENER = (
    'for try in $(seq 300); do ss -Hltn "sport = :$0" | grep -q . && exit 0; sleep 0.1; done; '
    'echo "nothing listens on port $0" >&2; exit 1'
)
_WAIT_FOR_END = 'for try in $(seq 300); do pgrep -F "$0" -x iperf3 >/dev/null || exit 0; sleep 0.1; done; exit 0'


def _whole(seconds: float) -> float:
    if seconds != int(seconds):
        raise ValueError("must be whole seconds")
    return seconds


WholeSeconds = Annotated[Seconds, AfterValidator(_whole)]


class Iperf3Params(WorkloadParams):
    """Amounts of the ``iperf3`` workload."""

    time: Annotated[WholeSeconds, Field(ge=1, le=86_400)] = 10.0
    """Time that is measured, in whole seconds."""
    omit: Annotated[WholeSeconds, Field(ge=0, le=60)] = 0.0
    """How long it sends first, not counted, so that TCP finds its speed; whole seconds."""
    streams: int = Field(default=1, ge=1, le=128)
    """Connections at once, all served by one thread on either side, as in iperf3 3.12."""
    protocol: Literal["tcp", "udp"] = "tcp"
    """TCP goes as fast as it can, UDP at `rate`."""
    rate: BitRate | None = None
    """For UDP: the rate at which all streams together send, without headers, such as 100 Mbit/s."""
    reverse: bool = False
    """The target sends and the source receives."""
    window: Bytes | None = Field(default=None, ge=4096, le=2**30)
    """Size of the sockets' buffers; the kernel tunes it if left out."""

    @model_validator(mode="after")
    def _rate_is_of_udp(self) -> Iperf3Params:
        if (self.rate is None) == (self.protocol == "udp"):
            raise ValueError("rate belongs to protocol udp, which needs it")
        if self.rate is not None and self.rate < self.streams:
            raise ValueError("rate must be at least 1 bit/s for each stream")
        return self


class Iperf3(Workload[Iperf3Params]):
    """``iperf3`` with a server for this workload alone, which serves one test and ends."""

    kind = "iperf3"
    sides = 2
    host_sides = frozenset({"source", "target"})
    Params = Iperf3Params
    tools = (("iperf3",), ("iperf3",))
    summary = "iperf3 sends as much as the network between two ends carries."
    metrics = with_run_time(
        throughput=Metric("B/s", "more", "throughput"),
        bytes=Metric("B", None, "bytes received"),
        retransmits=Metric("1", "less", "TCP segments sent again"),
        source_cpu=Metric("1", "less", "CPUs that iperf3 kept busy at the source"),
        target_cpu=Metric("1", "less", "CPUs that iperf3 kept busy at the target"),
        jitter=Metric("s", "less", "jitter of UDP packets"),
        rate_reached=Metric("1", "more", "part of the rate asked for at which UDP was sent"),
        packets=Metric("1", None, "UDP packets sent"),
        packets_lost=Metric("1", "less", "UDP packets lost"),
        loss=Metric("1", "less", "part of the UDP packets that was lost"),
    )
    throughput = "throughput"
    arrived = "bytes"

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """What only UDP has, or only TCP."""
        udp = frozenset(("jitter", "rate_reached", "packets", "packets_lost", "loss"))
        return frozenset({"retransmits"}) if params.get("protocol") == "udp" else udp

    @classmethod
    def is_timed(cls, params: Mapping[str, Any]) -> bool:
        """Always: it sends as much as it can in its `time`."""
        return True

    def footprint(self, accelerator: str) -> Footprint:
        """The time is given; nothing is written but some kilobytes in memory."""
        return Footprint(disk_bytes=0, seconds=_AROUND[accelerator] + self.params.omit + self.params.time)

    async def prepare(self, context: WorkloadContext) -> None:
        """Start the server and wait until it listens. One that an earlier cell may have left is ended first."""
        server, port = context.peer, _port(context)
        await _end_server(server, port)
        await server.run(["mkdir", "-p", _FOLDER])
        await server.run(
            [
                *("iperf3", "--server", "--one-off", "--daemon", "--json"),
                *("--bind", server.address, "--port", str(port)),
                *("--pidfile", _pid_file(port), "--logfile", _log_file(port)),
            ]
        )
        await server.run(["sh", "-c", _WAIT_FOR_LISTENER, str(port)])

    def client(self, context: WorkloadContext) -> Client:
        """iperf3 itself; from the place's address on the lab's bridge, so that no other way can be taken."""
        params = self.params
        argv = [
            *_TELL_ALL,
            *("iperf3", "--client", context.peer_address, "--port", str(_port(context))),
            *("--bind", context.source.address, "--json", "--connect-timeout", "10000"),
            *("--time", f"{params.time:.0f}", "--omit", f"{params.omit:.0f}", "--parallel", str(params.streams)),
        ]
        if params.rate is not None:
            argv += ["--udp", "--bitrate", str(params.rate // params.streams)]
        if params.reverse:
            argv.append("--reverse")
        if params.window is not None:
            argv += ["--window", str(params.window)]
        return Client(argv=tuple(argv), deadline=120 + 2 * (params.omit + params.time))

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Both sides give the same account of the test that was asked for, over the lab's bridge."""
        demand_success(finished, "iperf3")
        near = parse_iperf3(finished.stdout, "iperf3's client")
        far, far_text = await self._far(context)
        self._demand_test(context, near)
        sent, received = near.end.sum_sent, near.end.sum_received
        # The client repeats what the server sent it; the server's own report is the independent one.
        mine = far.end.sum_sent if self.params.reverse else far.end.sum_received
        told = sent if self.params.reverse else received
        demand_equal("bytes that the server counted and the client was told", mine.bytes, told.bytes)
        if received.bytes == 0:
            raise WorkloadError("nothing that iperf3 sent arrived")
        sender, receiver = (near, far)[:: -1 if self.params.reverse else 1]
        demand_arrived(sender, receiver, await self._in_flight(context) if self.params.protocol == "tcp" else None)
        omit, time = self.params.omit, self.params.time
        demand_time(finished.seconds, omit, time)
        for what, report, total in (("sender", sender, sent), ("receiver", receiver, received)):
            demand_lasted(what, report, total, omit, time, serves=report is far)
        return Collected(
            values=self._values(near, sent, received),
            raw={"iperf3 client": finished.stdout, "iperf3 server": far_text, "stderr": finished.stderr},
        )

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """What all intervals took, those that are omitted too; connections are made before."""
        near = parse_iperf3(texts["iperf3 client"], "iperf3's client")
        return ToolTime(sum(one.sum.seconds for one in near.intervals), _LATE_START[accelerator])

    async def _far(self, context: WorkloadContext) -> tuple[Iperf3Report, str]:
        """The server's account, once it has ended by itself or was ended."""
        server, port = context.peer, _port(context)
        await server.run(["sh", "-c", _WAIT_FOR_END, _pid_file(port)])
        text = (await server.run(["cat", _log_file(port)])).stdout
        await _end_server(server, port)
        return parse_iperf3(text, "iperf3's server"), text

    def _demand_test(self, context: WorkloadContext, near: Iperf3Report) -> None:
        """What ran is what was asked for, and between the two addresses."""
        asked, params = near.start.test_start, self.params
        demand_equal("streams of iperf3", asked.num_streams, params.streams)
        demand_equal("seconds of iperf3", asked.duration, params.time)
        demand_equal("seconds that iperf3 omitted", asked.omit, params.omit)
        demand_equal("reverse of iperf3", asked.reverse, params.reverse)
        demand_equal("bytes after which iperf3 ends", asked.bytes, 0)
        demand_equal("blocks after which iperf3 ends", asked.blocks, 0)
        demand_equal("rate of iperf3's streams", asked.target_bitrate, (params.rate or 0) // params.streams)
        demand_equal("window of iperf3", near.start.sock_bufsize, params.window or 0)
        if params.protocol == "tcp":
            demand_equal("bytes of iperf3's blocks", asked.blksize, _BLOCK_BYTES)
        if asked.protocol.lower() != params.protocol:
            raise WorkloadError(f"iperf3 ran {asked.protocol}, but {params.protocol} was asked for")
        demand_equal("connections of iperf3", len(near.start.connected), params.streams)
        ends = (context.source.address, context.peer_address)
        for one in near.start.connected:
            if (one.local_host, one.remote_host) != ends:
                raise WorkloadError(f"iperf3 connected {one.local_host} to {one.remote_host}, not {' to '.join(ends)}")

    async def _in_flight(self, context: WorkloadContext) -> float:
        """Most bytes that both kernels keep for the streams (tcp(7): tcp_wmem, tcp_rmem) and that iperf3 holds.

        setsockopt(2) doubles the size that it is given (socket(7), SO_SNDBUF).
        """
        sender, receiver = (context.source, context.peer)[:: -1 if self.params.reverse else 1]
        window = 2 * (self.params.window or 0)
        kept = max(window, await _most(sender, "tcp_wmem")) + max(window, await _most(receiver, "tcp_rmem"))
        return float(self.params.streams * (kept + 2 * _BLOCK_BYTES))

    def _values(self, near: Iperf3Report, sent: Sum, received: Sum) -> dict[str, float]:
        cpu = near.end.cpu_utilization_percent
        values = {
            RUN_TIME: received.seconds,
            "throughput": received.bytes / received.seconds,
            "bytes": received.bytes,
            "source_cpu": cpu.host_total / 100,
            "target_cpu": cpu.remote_total / 100,
        }
        if self.params.rate is not None:
            return values | {
                "jitter": received.jitter_ms / 1e3,
                "rate_reached": rate_reached(sent, self.params.rate),
                "packets": sent.packets,
                "packets_lost": received.lost_packets,
                "loss": received.lost_packets / max(received.packets, 1),
            }
        if sent.retransmits is None:
            raise WorkloadError("iperf3 did not count retransmits")
        return values | {"retransmits": sent.retransmits}


_BLOCK_BYTES = 128 * 1024
"""iperf3 reads and writes TCP in blocks of this size."""


def _port(context: WorkloadContext) -> int:
    """A port of this workload's own: on the host, the servers of all tiles share one address."""
    return _FIRST_PORT + context.position


def _pid_file(port: int) -> str:
    return f"{_FOLDER}/iperf3-{port}.pid"


def _log_file(port: int) -> str:
    return f"{_FOLDER}/iperf3-{port}.json"


async def _end_server(server: Shell, port: int) -> None:
    """End the server of this port where there is one, and remove its files; it does not write to an old log then."""
    await server.run(["pkill", "--pidfile", _pid_file(port), "--exact", "iperf3"], check=False)
    await server.run(["rm", "-f", _pid_file(port), _log_file(port)])


async def _most(shell: Shell, setting: str) -> int:
    """The largest of the three sizes of a TCP buffer, in bytes."""
    text = (await shell.run(["cat", f"/proc/sys/net/ipv4/{setting}"])).stdout
    sizes = text.split()
    if len(sizes) != 3 or not sizes[2].isdigit():
        raise WorkloadError(f"{setting} of {shell.name} cannot be read: {text.strip()[:100]}")
    return int(sizes[2])
