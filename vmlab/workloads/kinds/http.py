"""Requests for a dynamic page: ab, or a client with a pace, against Apache, PHP, WordPress and MariaDB."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from vmlab.model.concurrency import run_all
from vmlab.model.errors import WorkloadError
from vmlab.model.names import WORKLOADS_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Pace
from vmlab.workloads.metrics import Metric, latencies, with_run_time
from vmlab.workloads.pace import (
    DELIVERED,
    PACE,
    PACE_METRICS,
    check_pace,
    delivered_percent,
    demand_not_early,
    due_operations,
    idle_of_pace,
    paced_seconds,
    percentile,
    told_latencies,
)
from vmlab.workloads.programs import ask, command, install, told_progress
from vmlab.workloads.reports.ab_report import (
    RequestCount,
    demand_mean,
    demand_room,
    parse_ab,
    parse_percentiles,
)
from vmlab.workloads.services import ACCESS_LOG, selects, selects_since
from vmlab.workloads.shell import Shell
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import demand_equal, demand_success, is_amount, last_object
from vmlab.workloads.workload_steps import (
    Client,
    Collected,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    WorkloadContext,
    WorkloadParams,
)

_REQUEST_SECONDS = {"kvm": 0.03, "tcg": 0.26}
"""Measured on two idle cores under TCG; its figure for KVM is a guess."""
_LOG_BYTES = 5_000
_CLIENT = "the paced client"
_SILENT_BELOW = 200
"""With fewer requests ab prints little or no progress, so it is run with an option to print each answer's header."""
_PAGES_BEFORE = 1
"""Pages that `prepare` asks for, after the queries were counted."""
_MERGE = ("sh", "-c", 'exec "$@" 2>&1', "ab")
"""ab prints its progress to standard error; the engine reads standard output."""


class HttpParams(WorkloadParams):
    """Amounts of the ``http`` workload."""

    requests: int = Field(ge=1, le=10_000_000)
    """Requests of all connections together."""
    concurrency: int = Field(default=4, ge=1, le=256)
    """Requests at once."""
    path: str = Field(default="/", pattern=r"^/[A-Za-z0-9_./?=&%+-]*$", max_length=500)
    """Page on the server; each request for it must query the database."""

    pace: Annotated[Pace | None, PACE] = None
    """Requests that are due each second, such as 5/s, however slow the server is; as fast as possible if left out."""

    @model_validator(mode="after")
    def _enough_requests(self) -> HttpParams:
        if self.concurrency > self.requests:
            raise ValueError("concurrency must not be larger than requests")
        check_pace(self.requests, self.pace, "requests")
        return self


@dataclass(frozen=True, slots=True)
class Answered:
    """What the client says of its requests, all of which were served: received bytes, and figures by their metric.

    `texts` are raw outputs by their names.
    """

    client: str
    bytes: int
    values: Mapping[str, float]
    texts: Mapping[str, str]


class Http(ToolWorkload[HttpParams]):
    """``ab`` with a connection for each request."""

    kind = "http"
    sides = 2
    roles = (None, "web")
    Params = HttpParams
    tools = (("ab",), ())
    packages: ClassVar = {"ab": "apache2-utils"}
    around: ClassVar = {"kvm": 0.2, "tcg": 1.0}
    summary = "ab asks Apache for a page that WordPress makes from a database."
    metrics = with_run_time(
        requests=Metric("1", None, "requests"),
        requests_per_second=Metric("1/s", "more", "requests per second"),
        **latencies("mean", "p50", "p95", "p99", "max"),
        queries_per_request=Metric("1", None, "queries per request"),
        bytes=Metric("B", None, "bytes"),
        **PACE_METRICS,
    )
    throughput = "requests_per_second"
    latency = "latency_p95"
    loops = True
    follows_speed = True
    paced = "requests"

    def __init__(self, params: HttpParams) -> None:
        super().__init__(params)
        self._count = RequestCount()

    def footprint(self, accelerator: str) -> Footprint:
        """Logs alone are written; the page is only read."""
        requests = self.params.requests
        alone = requests * _REQUEST_SECONDS[accelerator]
        idle = idle_of_pace(alone, requests, self.params.pace)
        return Footprint(disk_bytes=requests * _LOG_BYTES, seconds=3 + alone + idle, idle_seconds=idle)

    def staged_by(self) -> dict[str, Any]:
        """The page that is asked for."""
        return {"path": self.params.path}

    async def stage(self, context: StagingContext) -> None:
        """Put the programs in place; on the server, have the page made once, so that PHP and MariaDB are warm."""
        await install(context.shell, "page_fetch")
        if context.side == "target":
            await install(context.shell, "access_count")
            await self._demand_page_by_queries(context)
        else:
            await install(context.shell, "paced_requests")

    async def rehearse(self, context: StagingContext) -> None:
        """Make the page once more on the server; on the client, start the program that fetches it."""
        if context.side == "target":
            await self._demand_page_by_queries(context)
        else:
            nobody = {"address": "127.0.0.1", "port": 9, "path": "/", "agent": "vmlab-rehearsal"}
            await context.shell.run(command("page_fetch", nobody), check=False)

    async def prepare(self, context: WorkloadContext) -> None:
        """One request over the network must be a whole page of WordPress."""
        await self._demand_page(context.source, context.peer_address)

    async def renew(self, context: WorkloadContext) -> None:
        """Count the server's queries anew, and ask for a page as before the first round."""
        queries = await selects(context.peer)
        await context.peer.write(_queries_file(context.workload), f"{queries}\n".encode())
        await self.prepare(context)

    async def _demand_page_by_queries(self, context: StagingContext) -> None:
        """Fetch the page on the server itself, and keep MariaDB's count of queries in a file."""
        before = await selects(context.shell)
        await self._demand_page(context.shell, "127.0.0.1")
        after = await selects(context.shell)
        if after <= before:
            raise WorkloadError(f"{self.params.path} on {context.shell.name} was made without a query to MariaDB")
        await context.shell.write(_queries_file(context.workload), f"{after}\n".encode())

    async def _demand_page(self, client: Shell, address: str) -> None:
        """Fetch the page at `address` from `client` and look at it."""
        url = f"http://{address}{self.params.path}"
        options = {"address": address, "port": 80, "path": self.params.path, "agent": "vmlab-warm-up"}
        page = await ask(client, "page_fetch", options, deadline=180)
        if page.get("status") != 200 or page.get("complete") is not True:
            raise WorkloadError(f"{url} is not a whole page: {page}")
        if not str(page.get("generator")).startswith("WordPress"):
            raise WorkloadError(f"{url} was not made by WordPress: {page}")

    def client(self, context: WorkloadContext) -> Client:
        """The client, with a user agent of this cell's own, by which the server's log knows its requests."""
        params = self.params
        if params.pace is not None:
            options = {"address": context.peer_address, "port": 80, "agent": context.tag, **params.model_dump()}
            patience = 600 + 10.0 * params.requests + paced_seconds(params.requests, params.pace)
            return Client(command("paced_requests", options), deadline=patience)
        show = ("-v", "2") if self.params.requests < _SILENT_BELOW else ()
        argv = (
            *_MERGE,
            "ab",
            *show,
            *("-n", str(self.params.requests), "-c", str(self.params.concurrency), "-l", "-s", "300"),
            *(
                "-H",
                f"User-Agent: {context.tag}",
                "-e",
                _percentile_file(context),
                f"http://{context.peer_address}{self.params.path}",
            ),
        )
        return Client(argv, deadline=600 + 10.0 * self.params.requests)

    def progress(self, line: str) -> Progress | None:
        """Requests done, in steps of a tenth part, or of some ten requests when there are few."""
        if self.params.pace is not None:
            return told_progress(line, "requests", total=self.params.requests)
        done = self._count.feed(line)
        return None if done is None else Progress(done, self.params.requests, "requests")

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """The client, Apache's log and MariaDB's counter agree that every request was served, and by queries."""
        demand_success(finished, "ab" if self.params.pace is None else _CLIENT)
        if self.params.pace is None:
            told = self._of_ab(context, finished)
        else:
            told = parse_paced(finished.stdout, self.params.requests, self.params.pace)
        # Side by side on both guests, and one after the other on each, whose processor they share.
        seen: list[Any] = await run_all([self._percentile_text(context), self._demand_served(context, told)])
        percentile_text, queries = seen
        texts = dict(told.texts)
        values = dict(told.values)
        if self.params.pace is None:
            percentiles = parse_percentiles(percentile_text, self.params.requests)
            demand_room(parse_ab(finished.stdout), percentiles)
            values |= {f"latency_p{percent}": percentiles[percent] for percent in (50, 95, 99)}
            values["latency_max"] = percentiles[100]
            texts["percentiles"] = percentile_text
        pages = self.params.requests + _PAGES_BEFORE
        if queries < pages:
            raise WorkloadError(f"MariaDB answered {queries} queries for {pages} pages")
        values |= {"queries_per_request": queries / pages, "bytes": told.bytes}
        return Collected(values, {**texts, "stderr": finished.stderr})

    def _of_ab(self, context: WorkloadContext, finished: Finished) -> Answered:
        report = parse_ab(finished.stdout)
        demand_equal("concurrency of ab", report.concurrency, self.params.concurrency)
        demand_equal("complete requests of ab", report.requests, self.params.requests)
        demand_equal("failed requests of ab", report.failed, 0)
        demand_equal("write errors of ab", report.write_errors, 0)
        demand_equal("responses other than 2xx", report.non_2xx, 0)
        found, asked = f"{report.host}:{report.port}{report.path}", f"{context.peer_address}:80{self.params.path}"
        if found != asked:
            raise WorkloadError(f"ab asked for {found}, not for {asked}")
        demand_mean(report)
        values = {
            RUN_TIME: report.total_time,
            "requests": report.requests,
            "requests_per_second": report.requests / report.total_time,
            "latency_mean": report.latency_mean,
        }
        return Answered("ab", report.transferred, values, {"ab": finished.stdout})

    async def _percentile_text(self, context: WorkloadContext) -> str:
        """The file that ab wrote; the paced client writes none."""
        if self.params.pace is not None:
            return ""
        return (await context.source.run(["cat", _percentile_file(context)])).stdout

    async def _demand_served(self, context: WorkloadContext, told: Answered) -> int:
        """Hold the client's account against the log; the queries that MariaDB answered since it was counted.

        ab takes a connection that closes without an answer for a complete request; the server's log does not.
        """
        options = {"log": ACCESS_LOG, "agent": context.tag, "path": self.params.path}
        log = await ask(context.peer, "access_count", options, deadline=300)
        if log.get("statuses") != {"200": self.params.requests}:
            raise WorkloadError(
                f"Apache's log has {log.get('statuses')} (status: requests), "
                f"but {self.params.requests} GETs of {self.params.path} with status 200 were asked for"
            )
        if log.get("bytes") != told.bytes:
            raise WorkloadError(f"Apache sent {log.get('bytes')} bytes, but {told.client} received {told.bytes}")
        before, after = await selects_since(context.peer, _queries_file(context.workload))
        return after - before


def _queries_file(workload: str) -> str:
    return f"/srv/{workload}/queries"


def _percentile_file(context: WorkloadContext) -> str:
    return f"{WORKLOADS_FOLDER}/{context.workload}.csv"


def parse_paced(text: str, requests: int, pace: float) -> Answered:
    """Read the end of a client that was asked for `requests` at `pace` a second. Raises WorkloadError.

    Latencies count from the due moments.
    """
    said = last_object(text, _CLIENT)
    keys = ("requests", "bytes", "seconds", "last_began")
    if not all(is_amount(said.get(key)) for key in keys) or not said["seconds"] > 0:
        raise WorkloadError(f"{_CLIENT} printed a line that cannot be read: {str(said)[:200]!r}")
    demand_equal(f"requests of {_CLIENT}", said["requests"], requests)
    demand_not_early(float(said["last_began"]), requests, pace, _CLIENT)
    latencies = told_latencies(text, requests, _CLIENT)
    values = {
        RUN_TIME: float(said["seconds"]),
        "requests": requests,
        "requests_per_second": requests / said["seconds"],
        "latency_mean": math.fsum(latencies) / requests,
        **{f"latency_p{percent}": percentile(latencies, percent) for percent in (50, 95, 99)},
        "latency_max": max(latencies),
        DELIVERED: delivered_percent(requests, due_operations(float(said["last_began"]), pace)),
    }
    return Answered(_CLIENT, int(said["bytes"]), values, {"client": text})
