"""Queries of a real general query log, replayed against MariaDB: once to warm its buffer pool, once measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from vmlab.model.errors import WorkloadError
from vmlab.model.names import NETWORK, WORKLOADS_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.workloads import query_log
from vmlab.workloads.metrics import Metric, ToolTime, latencies, with_run_time
from vmlab.workloads.programs import ask, command, install, told_progress
from vmlab.workloads.reports.closed_loop import demand_busy, mean_bounds
from vmlab.workloads.services import selects, sql
from vmlab.workloads.shell import Shell
from vmlab.workloads.verification import demand_equal, demand_success, last_object
from vmlab.workloads.workload_steps import (
    Client,
    Collected,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    Workload,
    WorkloadContext,
    WorkloadParams,
)

_DATABASE = "replay"
_PORT = 3306
_CONFIGURATION = "/etc/mysql/mariadb.conf.d/95-vmlab-replay.cnf"
# Statistics that MariaDB gathers anew by itself would change the plan of a query between two passes.
_SETTINGS = b"[mariadbd]\nbind-address = 0.0.0.0\nmax_connections = 1000\ninnodb_stats_auto_recalc = OFF\n"
_MOST_CONNECTIONS = 600
"""Connections of the log: one for each page that was asked for while it was captured."""
_QUERIES_OF_ONE = 36
_QUERY_SECONDS = {"kvm": 0.0009, "tcg": 0.009}
_STAGING_SECONDS = {"kvm": 3.0, "tcg": 25.0}
"""KVM's are those of the image's MariaDB on two cores of a busy host, TCG's ten times as much: a guess."""
_AROUND = {"kvm": 0.3, "tcg": 1.0}
_DATA_BYTES = 96 * 2**20
"""23 MiB of tables and indexes, and what InnoDB's own logs take besides: a guess."""
_SLACK = 1.02
"""Queries and passes are timed by clocks of several processes."""
_OF_NO_CLOCK = {"qemu": "an emulated processor has no clock of its own"}
"""By systemd-detect-virt(1), whose ``qemu`` means QEMU without KVM."""


class ReplayParams(WorkloadParams):
    """Amounts of the ``replay`` workload."""

    connections: int = Field(default=_MOST_CONNECTIONS, ge=1, le=_MOST_CONNECTIONS)
    """How much of the log is replayed: its first connections, each with about 36 queries of one page."""
    threads_per_cpu: int = Field(default=2, ge=1, le=32)
    """Connections at once for each processor of the server."""


class Replay(Workload[ReplayParams]):
    """SELECTs of a blog, by a program of our own over MariaDB's C library; docs/development/dependencies.md has why."""

    kind = "replay"
    sides = 2
    Params = ReplayParams
    summary = "Queries of a captured log are replayed against MariaDB, by default with two threads per CPU."
    metrics = with_run_time(
        warm_time=Metric("s", "less", "time of the pass before"),
        queries=Metric("1", None, "queries of one pass"),
        queries_per_second=Metric("1/s", "more", "queries per second"),
        rows=Metric("1", None, "rows of one pass"),
        bytes=Metric("B", None, "bytes that MariaDB sent in one pass"),
        threads=Metric("1", None, "connections at once"),
        cpus=Metric("1", None, "processors of the server"),
        **latencies("p50", "p95", "max"),
        source_cpu=Metric("1", "less", "CPUs that the replay kept busy at the source"),
        clock_hz=Metric("1/s", "more", "clock of the server's processors"),
        run_time_at_1_ghz=Metric("s", "less", "run time as at 1 GHz"),
        core_seconds_at_1_ghz=Metric("s", "less", "run time of one processor as at 1 GHz"),
    )
    throughput = "queries_per_second"
    latency = "latency_p95"
    loops = True

    def footprint(self, accelerator: str) -> Footprint:
        """Both passes; the tables are filled before the snapshot, and in each cell of guests that boot."""
        queries = 2 * self.params.connections * _QUERIES_OF_ONE
        return Footprint(
            disk_bytes=_DATA_BYTES,
            seconds=2 + queries * _QUERY_SECONDS[accelerator],
            staging_seconds=_STAGING_SECONDS[accelerator],
        )

    def staged_by(self) -> dict[str, Any]:
        """The log, and how much of it."""
        return {"log": query_log.digest(), "connections": self.params.connections}

    def _queries(self) -> list[list[str]]:
        return [list(queries) for queries in query_log.captured_queries()[: self.params.connections]]

    async def stage(self, context: StagingContext) -> None:
        """On the server: open MariaDB to the lab's network, fill the tables. On the client: the queries."""
        shell = context.shell
        if context.side == "source":
            await install(shell, "replay_client")
            await shell.write(_queries_file(context.workload), json.dumps(self._queries()).encode())
            return
        await install(shell, "clock_rate")
        await shell.write(_CONFIGURATION, _SETTINGS)
        await shell.run(["systemctl", "restart", "mariadb.service"], deadline=300)
        file = f"/srv/{context.workload}/data.sql"
        await shell.write(file, query_log.captured_data())
        user = f"'{_DATABASE}'@'{NETWORK.network_address}/{NETWORK.netmask}'"
        await sql(
            shell,
            f"CREATE OR REPLACE DATABASE {_DATABASE} CHARACTER SET utf8mb4",
            f"CREATE OR REPLACE USER {user}",
            f"GRANT SELECT ON {_DATABASE}.* TO {user}",
        )
        await shell.run(["sh", "-c", 'mariadb "$0" <"$1"', _DATABASE, file], deadline=900)

    async def prepare(self, context: WorkloadContext) -> None:
        """Count the server's processors, which says how many threads there are, and its queries until now."""
        cpus = await _cpus(context.peer)
        await context.source.write(_threads_file(context), f"{cpus * self.params.threads_per_cpu}\n".encode())
        await context.peer.write(_selects_file(context), f"{await selects(context.peer)}\n".encode())

    def client(self, context: WorkloadContext) -> Client:
        """Both passes in one program, whose connections stay open from one to the other."""
        options = {
            "address": context.peer_address,
            "port": _PORT,
            "socket": "",
            "user": _DATABASE,
            "database": _DATABASE,
            "queries": _queries_file(context.workload),
            "threads": _threads_file(context),
        }
        return Client(command("replay_client", options), deadline=300 + 20 * self.footprint("tcg").seconds)

    def progress(self, line: str) -> Progress | None:
        """Connections of the log that were replayed, in the first pass or the second."""
        return told_progress(line, "connections")

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """Both passes'; the log is read and connections are made before."""
        return ToolTime(values["warm_time"] + values[RUN_TIME], _AROUND[accelerator])

    async def renew(self, context: WorkloadContext) -> None:
        """Count the server's queries anew."""
        await self.prepare(context)

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Both passes had every query, its rows and as many bytes of the server; MariaDB counted the queries too."""
        demand_success(finished, "the replay")
        try:
            return await self._verified(context, finished, last_object(finished.stdout, "the replay"))
        except KeyError as missing:
            raise WorkloadError(f"the replay's account has no {missing.args[0]}") from missing

    async def _verified(self, context: WorkloadContext, finished: Finished, account: dict[str, Any]) -> Collected:
        warm, measured = account["warm"], account["measured"]
        queries = sum(map(len, self._queries()))
        self._demand_same(warm, measured, queries)
        before = (await context.peer.run(["cat", _selects_file(context)])).stdout.strip()
        demand_equal("SELECTs that MariaDB counted", await selects(context.peer) - int(before), 2 * queries)
        cpus = await _cpus(context.peer)
        demand_equal("threads of the replay", account["threads"], cpus * self.params.threads_per_cpu)
        clock, why = await _clock(context.peer)
        self._demand_latencies(measured, account["threads"])
        seconds = measured["seconds"]
        values = {
            RUN_TIME: seconds,
            "warm_time": warm["seconds"],
            "queries": queries,
            "queries_per_second": queries / seconds,
            "rows": measured["rows"],
            "bytes": measured["bytes_sent"],
            "threads": account["threads"],
            "cpus": cpus,
            **{key: measured[key] for key in ("latency_p50", "latency_p95", "latency_max")},
            "source_cpu": account["client_cpu_seconds"] / finished.seconds,
        }
        if clock is not None:
            values["clock_hz"] = clock
            values["run_time_at_1_ghz"] = seconds * clock / 1e9
            values["core_seconds_at_1_ghz"] = seconds * cpus * clock / 1e9
        return Collected(values, {"replay": finished.stdout, "stderr": finished.stderr, "clock": why})

    def _demand_latencies(self, measured: dict[str, Any], threads: int) -> None:
        """The processes had the time for the queries, and little else; each takes a whole connection of the log."""
        seconds, longest = measured["seconds"], measured["latency_max"]
        told = {50: measured["latency_p50"], 95: measured["latency_p95"], 100: longest}
        least, most = (measured["queries"] * mean for mean in mean_bounds("the replay", told))
        if least > threads * seconds * _SLACK:
            raise WorkloadError(
                f"the replay's queries took {least:.3f} s together, more than {threads} connections have in its "
                f"{seconds:.3f} s"
            )
        of_one = max(map(len, self._queries()))
        demand_busy("the replay", most, min(threads, self.params.connections), seconds, of_one * longest)

    def _demand_same(self, warm: dict[str, Any], measured: dict[str, Any], queries: int) -> None:
        for name, one in (("warm", warm), ("measured", measured)):
            demand_equal(f"queries of the {name} pass", one["queries"], queries)
        if warm["disagreed"]:
            raise WorkloadError(f"{warm['disagreed']} queries were answered differently in two threads")
        rows = query_log.captured_rows()[: self.params.connections]
        for name, one in (("warm", warm), ("measured", measured)):
            demand_equal(f"rows of the {name} pass", one["rows"], sum(map(sum, rows)))
            if one["counts"] != _digest(rows):
                raise WorkloadError(f"some queries of the {name} pass had other numbers of rows than they have")
        if warm["bytes_sent"] != measured["bytes_sent"]:
            raise WorkloadError(
                f"bytes that were sent differ: {warm['bytes_sent']} in the warm pass, {measured['bytes_sent']} in the "
                "measured one"
            )


def _digest(rows: Iterable[Iterable[int]]) -> str:
    """As `replay_client` makes it: of the digests of all connections, in order."""
    each = (hashlib.sha256(repr(list(one)).encode()).hexdigest() for one in rows)
    return hashlib.sha256("".join(each).encode()).hexdigest()


def _queries_file(workload: str) -> str:
    return f"/srv/{workload}/queries.json"


def _threads_file(context: WorkloadContext) -> str:
    return f"{WORKLOADS_FOLDER}/{context.workload}.threads"


def _selects_file(context: WorkloadContext) -> str:
    return f"{WORKLOADS_FOLDER}/{context.workload}.selects"


async def _cpus(server: Shell) -> int:
    text = (await server.run(["nproc"])).stdout.strip()
    if not text.isdigit():
        raise WorkloadError(f"the number of processors on {server.name} cannot be read: {text[:100]}")
    return int(text)


async def _clock(server: Shell) -> tuple[float | None, str]:
    """The mean clock of the server's processors in Hz, all of them busy; None where there is none."""
    kind = (await server.run(["systemd-detect-virt", "--vm"], check=False)).stdout.strip()
    if kind in _OF_NO_CLOCK:
        return None, f"absent: {_OF_NO_CLOCK[kind]} (systemd-detect-virt: {kind})\n"
    hertz = (await ask(server, "clock_rate", {}, deadline=120)).get("hertz")
    if not isinstance(hertz, list) or not hertz:
        return None, "absent: it is measured on x86-64 alone\n"
    return sum(hertz) / len(hertz), f"measured by a chain of additions, Hz of each processor: {hertz}\n"
