"""Mail in batches with pauses, then in one burst, to Postfix; the drain of its queue is timed apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from vmlab.model.concurrency import run_all
from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes, Pace, Seconds
from vmlab.workloads.metrics import Metric, with_run_time
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
from vmlab.workloads.services import LAB_USER, MAIL_DOMAIN, MAILDIR
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import demand_equal, demand_success, is_amount, last_object
from vmlab.workloads.workload_steps import (
    Client,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    WorkloadContext,
    WorkloadParams,
)

_CLOCK_PORT = 40025
_MESSAGE_SECONDS = {"kvm": 0.01, "tcg": 0.1}
"""Measured on two idle cores under TCG; its figure for KVM is a guess."""
_TIMES_WRITTEN = 3
_MESSAGE_OVERHEAD = 16_384
"""Queue, mailbox and journal with a flush for each, as a guest's disk counted them."""
_FINAL_LINE_END = 2
_ROUNDED = 0.001
_CLOCK_GRAIN = 0.01
"""A folder's time stamp is that of the kernel's last tick, up to 10 ms behind its clock."""

_REMOVE = 'grep -rlZxF -- "$0" "$1" | xargs -0 --no-run-if-empty rm -f'


class SmtpParams(WorkloadParams):
    """Amounts of the ``smtp`` workload."""

    batches: int = Field(ge=0, le=100_000)
    """Batches before the burst, a connection each."""
    messages: int = Field(ge=1, le=10_000)
    """Messages in a batch."""
    size: Bytes = Field(ge=1, le=50_000_000)
    """Bytes of each message's body."""
    pause: Seconds = Field(default=0.0, ge=0, le=3600)
    """Pause after each batch, the one before the burst included."""
    burst: int = Field(default=0, ge=0, le=1_000_000)
    """Messages sent at once over one connection at the end."""
    pace: Annotated[Pace | None, PACE] = None
    """Messages that are due each second, such as 5/s, in batches at even intervals; needs pause and burst to be 0."""

    @model_validator(mode="after")
    def _something_to_send(self) -> SmtpParams:
        if self.total == 0:
            raise ValueError("batches and burst must not both be 0")
        if self.pace is not None and (self.burst or self.pause):
            raise ValueError("with a pace, pause and burst must be 0: the pace says when a batch is due")
        check_pace(self.total, self.pace, "messages")
        return self

    @property
    def total(self) -> int:
        """Messages of the batches and the burst."""
        return self.batches * self.messages + self.burst

    @property
    def pauses(self) -> float:
        """Seconds of all pauses together."""
        return self.pause * (self.batches if self.burst else max(0, self.batches - 1))


class Smtp(ToolWorkload[SmtpParams]):
    """``smtp-source`` against Postfix, which delivers into a Maildir."""

    kind = "smtp"
    sides = 2
    roles = (None, "mail")
    Params = SmtpParams
    texts = ("client", "drain")
    tool = "the mail client"
    around: ClassVar = {"kvm": 0.3, "tcg": 2.0}
    summary = "smtp-source sends mail to Postfix in batches and a burst, until all of it is delivered."
    metrics = with_run_time(
        sending_time=Metric("s", "less", "sending time"),
        burst_time=Metric("s", "less", "burst time"),
        drain_time=Metric("s", "less", "drain time"),
        messages=Metric("1", None, "messages"),
        bytes=Metric("B", None, "bytes"),
        messages_per_second=Metric("1/s", "more", "messages per second"),
        latency_p95=Metric("s", "less", "95th percentile of a batch's latency"),
        **PACE_METRICS,
    )
    latency = "latency_p95"
    loops = True
    paced = "messages"

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """What only a pace measures, where there is none."""
        of_pace = super().left_out(params)
        return of_pace and of_pace | {"messages_per_second", "latency_p95"}

    def __init__(self, params: SmtpParams) -> None:
        super().__init__(params)
        self._drain: dict[str, Any] = {}

    def footprint(self, accelerator: str) -> Footprint:
        """Each message is written to the queue and to the mailbox, and flushed."""
        params = self.params
        sending = params.total * _MESSAGE_SECONDS[accelerator]
        idle = params.pauses + idle_of_pace(sending, params.total, params.pace)
        return Footprint(
            disk_bytes=params.total * (params.size + _MESSAGE_OVERHEAD) * _TIMES_WRITTEN,
            seconds=3 + sending + idle,
            idle_seconds=idle,
        )

    async def stage(self, context: StagingContext) -> None:
        """Put the programs in place; on the server, empty the mailbox."""
        if context.side == "source":
            await install(context.shell, "smtp_client", "clock_difference")
            return
        await install(context.shell, "queue_watch", "mail_count")
        await context.shell.run(["find", f"{MAILDIR}/new", "-type", "f", "-delete"], deadline=600)

    def client(self, context: WorkloadContext) -> Client:
        """The sending program."""
        options = {
            "server": f"{context.peer_address}:25",
            "sender": f"{LAB_USER}@{MAIL_DOMAIN}",
            "recipient": f"{LAB_USER}@{MAIL_DOMAIN}",
            "subject": context.tag,
            **self.params.model_dump(),
        }
        pauses = self.params.pause * self.params.batches + paced_seconds(self.params.total, self.params.pace)
        return Client(command("smtp_client", options), deadline=600 + pauses + 5.0 * self.params.total)

    def progress(self, line: str) -> Progress | None:
        """Messages accepted, in the stages ``batches`` and ``burst``."""
        return told_progress(line, "messages")

    async def settle(self, context: WorkloadContext, finished: Finished) -> None:
        """Wait until Postfix's queue is empty, and measure how far the two guests' clocks are apart."""
        demand_success(finished, "the mail client")
        patience = 300 + 2.0 * self.params.total
        watched, clocks = await run_all(
            [
                ask(context.peer, "queue_watch", {"port": _CLOCK_PORT, "deadline": patience}, deadline=patience + 60),
                ask(
                    context.source,
                    "clock_difference",
                    {"address": context.peer_address, "port": _CLOCK_PORT},
                    deadline=120,
                ),
            ]
        )
        if watched.get("empty") is None:
            raise WorkloadError(f"{watched.get('left')} messages were still in the queue after {patience:.0f} s")
        self._drain = {**watched, **clocks}

    async def renew(self, context: WorkloadContext) -> None:
        """Remove what was delivered in the round before, and no other workload's mail."""
        before = replace(context, round=context.round - 1)
        await context.peer.run(["sh", "-c", _REMOVE, f"Subject: {before.tag}", f"{MAILDIR}/new"], deadline=600)

    async def printed(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """What the client said, and what was seen of the queue."""
        return {"client": finished.stdout, "drain": json.dumps(self._drain)}

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """Every message lies in the mailbox, whole."""
        mail = await ask(context.peer, "mail_count", {"maildir": MAILDIR, "subject": context.tag}, deadline=300)
        demand_equal("delivered messages", float(mail.get("delivered", 0)), self.params.total)
        if mail.get("sizes") != {str(self.params.size + _FINAL_LINE_END): self.params.total}:
            raise WorkloadError(
                f"messages of {self.params.size} bytes were sent; delivered (bytes: messages): {mail['sizes']}"
            )
        return {"mailbox": json.dumps(mail)}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From what client and queue said; that all messages lie in the mailbox is known from the server alone."""
        sent = parse_client(texts["client"])
        demand_equal("accepted messages", sent["accepted"], self.params.total)
        self._demand_times(sent)
        return {
            RUN_TIME: sent["seconds"],
            "sending_time": sent["sending"],
            "burst_time": sent["burst"],
            "drain_time": drain_seconds(sent, json.loads(texts["drain"])),
            "messages": self.params.total,
            "bytes": self.params.total * self.params.size,
            **self._kept_pace(texts["client"], sent),
        }

    def _demand_times(self, sent: Mapping[str, float]) -> None:
        """The client's times are those of what was asked for: its pauses, and a burst where there is one."""
        params = self.params
        least = sent["sending"] + params.pauses
        if sent["seconds"] < least - _ROUNDED:
            raise WorkloadError(
                f"the mail client worked for {sent['seconds']:.3f} s; sending and its pauses take {least:.3f} s"
            )
        if (sent["burst"] > 0) != (params.burst > 0) or sent["burst"] > sent["sending"] + _ROUNDED:
            raise WorkloadError(
                f"the mail client reports a burst of {sent['burst']:.3f} s, and {params.burst} messages were asked for"
            )

    def _kept_pace(self, text: str, sent: Mapping[str, float]) -> dict[str, float]:
        """Of a client with a pace; {} for one without."""
        params = self.params
        if params.pace is None:
            return {}
        demand_not_early(sent["last_began"], params.batches, params.pace / params.messages, "the mail client")
        latencies = told_latencies(text, params.batches, "the mail client")
        due = due_operations(sent["last_began"], params.pace / params.messages)
        return {
            "messages_per_second": params.total / sent["seconds"],
            "latency_p95": percentile(latencies, 95),
            DELIVERED: delivered_percent(params.batches, due),
        }


def parse_client(text: str) -> dict[str, float]:
    """The client's last line: accepted, seconds, sending, burst, last_began, clock. Raises WorkloadError."""
    said = {"last_began": 0.0, **last_object(text, "the mail client")}
    wanted = ("accepted", "seconds", "sending", "burst", "last_began", "clock")
    if not all(is_amount(said.get(key)) for key in wanted):
        raise WorkloadError(f"the mail client printed a line that cannot be read: {str(said)[:200]!r}")
    return {key: float(said[key]) for key in wanted}


def drain_seconds(sent: dict[str, float], drain: dict[str, Any]) -> float:
    """From the last accepted message (the source's clock) until the queue was empty (the target's clock).

    A busy source may see the server's answer only after the message was delivered; then the drain took 0 s. Raises
    WorkloadError when the queue was never watched, or was empty before the last sending even began.
    """
    if not drain:
        raise WorkloadError("the mail queue was not watched")
    seconds = float(drain["empty"]) - (sent["clock"] + float(drain["ahead"]))
    last = sent["burst"] or sent["sending"]
    if seconds < -(last + float(drain["uncertainty"]) + _CLOCK_GRAIN):
        raise WorkloadError(
            f"the mail queue was empty {-seconds - last:.3f} s before the last messages were sent: "
            "a clock was set meanwhile"
        )
    return max(0.0, seconds)
