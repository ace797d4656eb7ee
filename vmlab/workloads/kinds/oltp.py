"""Transactions of reads and writes against PostgreSQL, by sysbench."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Pace
from vmlab.workloads.metrics import Metric, ToolTime, latencies, with_run_time
from vmlab.workloads.pace import (
    DELIVERED,
    PACE,
    PACE_METRICS,
    check_pace,
    delivered_percent,
    idle_of_pace,
    paced_seconds,
)
from vmlab.workloads.reports.sysbench_report import (
    DatabaseReport,
    IntervalCount,
    Report,
    demand_threads,
    parse_queue,
    parse_seed,
    parse_sysbench,
    parse_target_rate,
)
from vmlab.workloads.services import DATABASE
from vmlab.workloads.shell import Shell
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import demand_equal
from vmlab.workloads.workload_steps import (
    Client,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    Stored,
    WorkloadContext,
    WorkloadParams,
)

_SOCKET_FOLDER = "/var/run/postgresql"
"""Where the server listens on its own guest, network or not."""
_ROW_BYTES = 840
_TRANSACTION_BYTES = 10_000
"""Heap, indexes, log and journal, as a guest's disk counted them."""
_TRANSACTION_SECONDS = {"kvm": 0.003, "tcg": 0.026}
_READS, _RANGES, _OTHERS = 10, 4, 6
"""Statements of one transaction of sysbench's oltp_read_write; ranges are reads, BEGIN and COMMIT others, as is what
wrote no row."""
_WRITTEN = {"inserted": 1, "updated": 2, "deleted": 1}
"""Rows of one transaction: two updates, and a row that is deleted and inserted again."""
_RANGE_ROWS = 100
_MOST_ROWS = 0.8
"""The part of these rows, and of those that it reads, that the server has to count: a row that another transaction has
just deleted is none, and ranges at a table's end are shorter."""
_CONNECTION_SECONDS = {"kvm": 0.05, "tcg": 0.6}
"""Until sysbench has started, and for each connection: measured beside other guests under TCG."""
_ROW_SECONDS = {"kvm": 2e-5, "tcg": 1.5e-4}
"""Measured on two idle cores under TCG; its figure for KVM is a guess."""


class OltpParams(WorkloadParams):
    """Amounts of the ``oltp`` workload."""

    engine: Literal["postgresql"] = "postgresql"
    """Database server."""
    transactions: int = Field(ge=1, le=10_000_000)
    """Transactions of all connections together; each has 20 statements, 16 without `range_selects`."""
    concurrency: int = Field(default=4, ge=1, le=40)
    """Connections at once, a thread of sysbench each; the server accepts 50 from all clients together."""
    tables: int = Field(default=4, ge=1, le=64)
    """Tables that are made."""
    rows: int = Field(default=5_000, ge=1_000, le=10_000_000)
    """Rows of each table. With few rows transactions deadlock, and each deadlock costs a second of waiting."""
    access: Literal["special", "uniform"] = "special"
    """Which rows are used: mostly a few, as sysbench does by default, or all equally often."""
    range_selects: bool = True
    """Whether a transaction has four SELECTs of 100 rows each besides its ten of one row."""
    preload: bool = False
    """Whether the server, with its own buffers empty, reads all tables once before the start."""
    pace: Annotated[Pace | None, PACE] = None
    """Transactions that are due in a second on average, a whole number such as 5/s; as fast as possible if left out."""

    @model_validator(mode="after")
    def _possible_pace(self) -> OltpParams:
        if self.pace is not None and self.pace != int(self.pace):
            raise ValueError("pace must be a whole number of transactions in a second, as sysbench takes no other")
        check_pace(self.transactions, self.pace, "transactions")
        return self


class Oltp(ToolWorkload[OltpParams]):
    """``sysbench oltp_read_write`` with one transaction for each event."""

    kind = "oltp"
    sides = 2
    roles = (None, "database")
    Params = OltpParams
    tools = (("sysbench",), ())
    texts = ("sysbench",)
    tool = "sysbench oltp_read_write"
    around: ClassVar = {"kvm": 0.3, "tcg": 3.5}
    summary = "sysbench runs read/write transactions against PostgreSQL."
    metrics = with_run_time(
        transactions=Metric("1", None, "transactions"),
        transactions_per_second=Metric("1/s", "more", "transactions per second"),
        **latencies("avg", "p95"),
        errors=Metric("1", "less", "transactions done again"),
        reconnects=Metric("1", "less", "connections made again"),
        **PACE_METRICS,
    )
    throughput = "transactions_per_second"
    latency = "latency_p95"
    loops = True
    paced = "transactions"

    def __init__(self, params: OltpParams) -> None:
        super().__init__(params)
        self._count = IntervalCount(params.transactions)

    def footprint(self, accelerator: str) -> Footprint:
        """What the server writes; the client writes nothing."""
        params = self.params
        rows = params.tables * params.rows
        alone = params.transactions * _TRANSACTION_SECONDS[accelerator]
        idle = idle_of_pace(alone, params.transactions, params.pace)
        return Footprint(
            disk_bytes=rows * _ROW_BYTES + params.transactions * _TRANSACTION_BYTES,
            seconds=5 + alone + idle,
            idle_seconds=idle,
            staging_seconds=rows * _ROW_SECONDS[accelerator],
        )

    def stored(self) -> tuple[Stored, ...]:
        """The tables with their indexes."""
        return (Stored("target", self.params.tables * self.params.rows * _ROW_BYTES, "rows"),)

    def _sysbench(self, server: str, seed: int, *options: str) -> tuple[str, ...]:
        return (
            "sysbench",
            "oltp_read_write",
            "--db-driver=pgsql",
            f"--pgsql-host={server}",
            f"--pgsql-user={DATABASE}",
            f"--pgsql-db={DATABASE}",
            f"--tables={self.params.tables}",
            f"--table-size={self.params.rows}",
            f"--rand-seed={seed}",
            *options,
        )

    def staged_by(self) -> dict[str, Any]:
        """Number and size of the tables."""
        return {"engine": self.params.engine, "tables": self.params.tables, "rows": self.params.rows}

    async def stage(self, context: StagingContext) -> None:
        """On the server: fill the tables, gather the planner's statistics, and leave no checkpoint for later.

        What the server had counted by then is kept in a file.
        """
        if context.side == "source":
            return
        rows = self.params.tables * self.params.rows
        seed = _seed(context.seed, 0)
        await context.shell.run(self._sysbench(_SOCKET_FOLDER, seed, "cleanup"), check=False)
        await context.shell.run(self._sysbench(_SOCKET_FOLDER, seed, "prepare"), deadline=300 + rows * 0.02)
        tables = ", ".join(self._tables())
        await _sql(context.shell, DATABASE, f"VACUUM ANALYZE {tables}", "CHECKPOINT", deadline=300 + rows * 0.01)
        if self.params.preload:
            await context.shell.run(["systemctl", "restart", "postgresql.service"], deadline=300)
        await _keep_counters(context.shell, context.workload)

    async def prepare(self, context: WorkloadContext) -> None:
        """Reads the tables where that is asked for, and counts anew, as reading counts, too."""
        if not self.params.preload:
            return
        relations = [(table, f"{table}_pkey", f"k_{number}") for number, table in enumerate(self._tables(), 1)]
        names = ", ".join(f"'{name}'" for names in relations for name in names)
        deadline = 300 + self.params.tables * self.params.rows * 0.002
        extension, blocks = "CREATE EXTENSION IF NOT EXISTS pg_prewarm", _BLOCKS_READ.format(names)
        (answer,) = await _sql(context.peer, DATABASE, extension, blocks, deadline=deadline)
        having, read = (_whole("count of blocks", count) for count in answer.split("|"))
        demand_equal("blocks of the tables that were read", read, having)
        await _keep_counters(context.peer, context.workload)

    def client(self, context: WorkloadContext) -> Client:
        """As many events as transactions; no end by time."""
        options = (
            f"--threads={self.params.concurrency}",
            f"--events={self.params.transactions}",
            f"--rand-type={self.params.access}",
            "--time=0",
            "--report-interval=1",
            *(() if self.params.range_selects else ("--range-selects=off",)),
            *(() if self.params.pace is None else (f"--rate={self.params.pace:.0f}",)),
            "run",
        )
        argv = self._sysbench(context.peer_address, _seed(context.seed, context.tile), *options)
        # The moments are drawn at random, so that all of them may take longer than they do on average.
        paced = 2 * paced_seconds(self.params.transactions, self.params.pace)
        return Client(argv=argv, deadline=600 + 4.0 * self.params.transactions + paced)

    def progress(self, line: str) -> Progress | None:
        """Transactions done, from sysbench's own rate each second."""
        return self._count.progress(line, "transactions")

    async def renew(self, context: WorkloadContext) -> None:
        """Count the server's work anew; the tables are as large as they were."""
        await _keep_counters(context.peer, context.workload)

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """The server committed as many transactions as were asked for, and no row was lost."""
        demand_equal("seed of sysbench", parse_seed(finished.stdout), _seed(context.seed, context.tile))
        served, rows = await _served(context.peer, context.workload, self._tables())
        if served.commits < self.params.transactions:
            raise WorkloadError(
                f"PostgreSQL committed {served.commits} transactions, but {self.params.transactions} were asked for"
            )
        self._demand_work(served)
        self._demand_rows(rows)
        return {"xact_commit": f"{served.commits}\n"}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From sysbench's report; what the server committed is known from the server alone."""
        report = parse_sysbench(Report, texts["sysbench"])
        counts = parse_sysbench(DatabaseReport, texts["sysbench"])
        demand_equal("transactions of sysbench", counts.transactions, self.params.transactions)
        self._demand_statements(counts)
        demand_equal("threads of sysbench", report.threads, self.params.concurrency)
        paced = {}
        if self.params.pace is None:
            demand_threads(report, self.params.concurrency)
        else:
            queue = parse_queue(texts["sysbench"])
            paced[DELIVERED] = delivered_percent(queue.begun, queue.begun + queue.waiting)
            demand_equal("pace of sysbench", parse_target_rate(texts["sysbench"]), self.params.pace)
        return {
            RUN_TIME: report.total_time,
            "transactions": counts.transactions,
            "transactions_per_second": counts.transactions / report.total_time,
            "latency_avg": report.latency_avg,
            "latency_p95": report.latency_p95,
            "errors": counts.ignored_errors,
            "reconnects": counts.reconnects,
            **paced,
        }

    def _demand_statements(self, counts: DatabaseReport) -> None:
        """Each transaction has all of its statements; one that is done again has some of them once more."""
        again = counts.ignored_errors + counts.reconnects
        reads = _READS + (_RANGES if self.params.range_selects else 0)
        for what, found, each in (("reads", counts.reads, reads), ("other", counts.writes + counts.other, _OTHERS)):
            least = each * counts.transactions
            if not least <= found <= least + each * again:
                raise WorkloadError(f"statements of sysbench that are {what}: {found}, but {least} were asked for")

    def _demand_work(self, served: _Served) -> None:
        """The transactions wrote and read the rows that theirs do."""
        read = _READS + (_RANGES * _RANGE_ROWS if self.params.range_selects else 0)
        # Of each connection's last transaction every row that it writes may be one that another has just deleted. What
        # it reads is there: no other sees a transaction that is not at its end.
        sure = max(0, self.params.transactions - self.params.concurrency)
        counted = {**dict.fromkeys(_WRITTEN, sure), "read": self.params.transactions}
        for what, each in {**_WRITTEN, "read": read}.items():
            least = math.ceil(_MOST_ROWS * each * counted[what])
            if (found := getattr(served, what)) < least:
                raise WorkloadError(
                    f"PostgreSQL has {what} {found} rows, and {self.params.transactions} transactions take {least}"
                )

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """sysbench's own; it starts and connects before."""
        around = self.around[accelerator] + _CONNECTION_SECONDS[accelerator] * self.params.concurrency
        return ToolTime(values[RUN_TIME], around)

    def _tables(self) -> list[str]:
        return [f"sbtest{number}" for number in range(1, self.params.tables + 1)]

    def _demand_rows(self, counts: Sequence[str]) -> None:
        """Each transaction deletes one row and inserts it again, so the tables end as large as they began."""
        demand_equal("counted tables", len(counts), self.params.tables)
        for table, rows in zip(self._tables(), counts, strict=True):
            demand_equal(f"rows in table {table}", _whole("count of rows", rows), self.params.rows)


def _seed(seed: int, tile: int) -> int:
    """sysbench takes 31 bits; 0 would mean the clock."""
    return (seed * 1_000 + tile) % (2**31 - 1) + 1


def _counters_file(workload: str) -> str:
    return f"/srv/{workload}/counters"


async def _sql(server: Shell, database: str, *statements: str, deadline: float) -> list[str]:
    """Run statements as the superuser on the server itself, in one session; the lines that they answer."""
    return (await server.run(_psql(database, *statements), deadline=deadline)).stdout.splitlines()


_REAL_PSQL = 'exec /usr/lib/postgresql/*/bin/psql "$@"'
"""Debian's psql is a program in Perl that starts this one: to start both takes an emulated guest seconds."""


def _psql(database: str, *statements: str) -> list[str]:
    argv = ["sh", "-c", _REAL_PSQL, "psql", "-h", _SOCKET_FOLDER, "-U", "postgres", "-d", database]
    argv += ["-XAtq", "-v", "ON_ERROR_STOP=1"]
    return [*argv, *(word for statement in statements for word in ("-c", statement))]


_SESSIONS = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{DATABASE}' AND usename = '{DATABASE}'"
_COUNTERS = (
    "SELECT xact_commit, tup_inserted, tup_updated, tup_deleted, tup_returned + tup_fetched"
    f" FROM pg_stat_database WHERE datname = '{DATABASE}'"
)
"""Asked from another database, and so not counted itself. A session adds its counts when it ends, so that the answer
holds where there is no session.
"""
_BLOCKS_READ = (
    "SELECT sum(pg_relation_size(oid) / current_setting('block_size')::int)::bigint, sum(pg_prewarm(oid, 'read'))"
    " FROM pg_class WHERE relname IN ({})"
)
"""How many blocks these tables and indexes have, and how many of them have been read past the server's own buffers."""
_TRIES = 60
_PAUSE = 0.5


async def _when_closed(server: Shell, argv: Sequence[str], *, sessions: int) -> list[str]:
    """The lines that `argv` prints once that of the open `sessions`, by its place among them, is 0."""
    # Late, as in `model.concurrency`.
    import asyncio

    for _ in range(_TRIES):
        answer = (await server.run(argv, deadline=600)).stdout.splitlines()
        if answer[sessions : sessions + 1] == ["0"]:
            return answer
        await asyncio.sleep(_PAUSE)
    raise WorkloadError(f"connections to PostgreSQL were still open {_TRIES * _PAUSE:g} s after sysbench had ended")


class _Served(NamedTuple):
    """What the server counts: transactions that were committed, and rows; an index's entries are read, too."""

    commits: int
    inserted: int
    updated: int
    deleted: int
    read: int

    @classmethod
    def of(cls, when: str, line: str) -> _Served:
        """Raises WorkloadError for what is no answer."""
        counts = line.split("|")
        if len(counts) != len(cls._fields):
            raise WorkloadError(f"PostgreSQL's counters {when} cannot be read: {line[:200]!r}")
        return cls(*(_whole(f"counter {when}", count) for count in counts))


async def _keep_counters(server: Shell, workload: str) -> None:
    """Keep what was counted in the benchmark's database so far in a file on the server, for `_served`."""
    answer = await _when_closed(server, _psql("postgres", _SESSIONS, _COUNTERS), sessions=0)
    _Served.of("before the start", answer[-1])
    await server.write(_counters_file(workload), f"{answer[-1]}\n".encode())


async def _served(server: Shell, workload: str, tables: Sequence[str]) -> tuple[_Served, list[str]]:
    """What was counted since it was kept, and the rows of each table as the server printed them.

    All that is asked of the server after the client, in one command: each one costs an emulated guest time.
    """
    counts = [f"SELECT count(*) FROM {table}" for table in tables]
    asked = _psql("postgres", _SESSIONS, _COUNTERS, f"\\connect {DATABASE}", *counts)
    argv = ["sh", "-c", 'cat "$0"; exec "$@"', _counters_file(workload), *asked]
    before, _, after, *rows = [*await _when_closed(server, argv, sessions=1), ""]
    pairs = zip(_Served.of("after the end", after), _Served.of("before the start", before), strict=True)
    return _Served(*(now - then for now, then in pairs)), rows[:-1]


def _whole(what: str, text: str) -> int:
    if not text.isdigit():
        raise WorkloadError(f"PostgreSQL's {what} cannot be read: {text[:200]!r}")
    return int(text)
