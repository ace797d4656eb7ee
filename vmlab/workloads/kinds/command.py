"""A command of the user's own: what a shell in the guest runs, with figures by patterns in what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.image_name import Packages
from vmlab.model.units import Seconds
from vmlab.workloads.metrics import SHARES, Metric, ToolTime, with_run_time
from vmlab.workloads.pace import DELIVERED
from vmlab.workloads.programs import ask, command, install
from vmlab.workloads.reports.found_figures import (
    AskedMetric,
    Pattern,
    Printed,
    figures_in,
    found_metrics,
    said_lines,
)
from vmlab.workloads.sent_file import SentFile
from vmlab.workloads.shell import Shell
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import is_amount, last_object, read_from_a_guest
from vmlab.workloads.workload_steps import Client, Finished, Footprint, StagingContext, WorkloadContext, WorkloadParams

MOST_KEPT = 4 * 2**20
"""Bytes that a command may print: what it keeps for its record."""
_ROUNDS = "rounds_per_second"
_PROGRAM = "command_client"
_FOLDER = "/var/lib/vmlab/command"
_KEPT = "/run/vmlab/command"
_TO = "{to}"
_LONGEST_TEXT = 16_384
_ROUND_SECONDS = 10.0
"""What a round is taken to last by the plan, as nobody knows."""
_A_ROUND = {"kvm": 0.02, "tcg": 0.2}
"""Seconds between two rounds: the next shell is forked, and what the last one started is looked for."""
_MARGIN = 60.0
_METRIC = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII)
_TAKEN = (RUN_TIME, _ROUNDS, DELIVERED, "wall_seconds", *SHARES)


def _text(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("needs a command for a shell")
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"is longer than {_LONGEST_TEXT} characters; `files` sends a script")
    return text


def _metric_name(name: str) -> str:
    if not _METRIC.fullmatch(name):
        raise ValueError("needs small letters, digits and _, at most 40, the first a letter")
    if name in _TAKEN:
        raise ValueError("is taken: vmlab has a metric of this name itself")
    return name


def _user(name: str) -> str:
    if not _USER.fullmatch(name):
        raise ValueError("needs the name of a user, such as postgres")
    return name


ShellText = Annotated[str, AfterValidator(_text), WithJsonSchema({"type": "string", "maxLength": _LONGEST_TEXT})]
MetricName = Annotated[
    str, AfterValidator(_metric_name), WithJsonSchema({"type": "string", "pattern": f"^{_METRIC.pattern}$"})
]
User = Annotated[str, AfterValidator(_user), WithJsonSchema({"type": "string", "pattern": f"^{_USER.pattern}$"})]


class CommandParams(WorkloadParams):
    """What the ``command`` workload runs, and how its output is read."""

    run: ShellText
    """The command that is timed, for `sh -c` in the guest; `{to}` is the address of the other guest."""
    prepare: ShellText | None = None
    """A command before `run`, which may leave servers running; not timed."""
    prepare_to: ShellText | None = None
    """With `to`: a command in that guest, before `prepare`, such as one that starts a server."""
    packages: Packages = ()
    """Additional Debian packages for its guests, such as redis-server, like `packages` of a guest."""
    expect: Pattern | None = None
    """A regular expression that must match in the output of each round, or the workload fails."""
    metrics: dict[MetricName, AskedMetric] = Field(default_factory=dict, max_length=32)
    """Metrics in the output by name, each with `find`, `csv` or `json`, `unit` and `better`."""
    rounds: int = Field(default=1, ge=1, le=10_000)
    """How often the command runs, one after another; its metrics are means over the rounds."""
    time: Annotated[Seconds, Field(gt=0, le=3600)] | None = None
    """Instead of `rounds`: how long new rounds may begin, such as 30 s."""
    files: Annotated[tuple[SentFile, ...], Field(max_length=32)] = ()
    """Files below the scenario's folder, such as ./bench.sh, that are sent into the folder where the command runs."""
    user: User = "root"
    """Who runs the command in the guest."""
    timeout: Annotated[Seconds, Field(gt=0, le=86400)] = 600.0
    """The most that all rounds together, and likewise `prepare`, may take before the workload fails."""

    @field_validator("run", "prepare", "prepare_to", mode="after")
    @classmethod
    def _of_the_other_guest(cls, text: str | None, validation: ValidationInfo) -> str | None:
        if text is None or not (validation.context or {}).get("alone"):
            return text
        if validation.field_name == "prepare_to":
            raise ValueError("needs from and to instead of on")
        if _TO in text:
            raise ValueError(f"has {_TO}, which needs from and to instead of on")
        return text

    @field_validator("files", mode="after")
    @classmethod
    def _each_once(cls, files: tuple[SentFile, ...]) -> tuple[SentFile, ...]:
        names = [one.name for one in files]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two files are called {twice}, and all are sent into one folder")
        return files

    @model_validator(mode="after")
    def _possible(self) -> CommandParams:
        if self.time is not None and "rounds" in self.model_fields_set:
            raise ValueError("time and rounds exclude each other")
        if self.time is not None and self.time >= self.timeout:
            raise ValueError("time must be less than timeout")
        return self


class Command(ToolWorkload[CommandParams]):
    """``sh -c`` with a user's text, through a client that keeps the output and ends whatever was started."""

    kind = "command"
    takes_pair = True
    needs_guest = True
    Params = CommandParams
    tool = "the client of the command"
    texts = ("account", "output", "errors")
    around: ClassVar = {"kvm": 0.2, "tcg": 2.0}
    summary = "A shell command of your own, timed in a guest, with metrics found in its output."
    metrics = with_run_time(rounds_per_second=Metric("1/s", "more", "rounds per second"))
    throughput = _ROUNDS

    @classmethod
    def declared(cls, params: Mapping[str, Any]) -> Mapping[str, Metric]:
        """With those that the scenario names."""
        own = found_metrics(params.get("metrics")).items()
        return {**cls.metrics, **{name: one.declared(name) for name, one in own if name not in cls.metrics}}

    @classmethod
    def is_timed(cls, params: Mapping[str, Any]) -> bool:
        """With a `time`."""
        return params.get("time") is not None

    def footprint(self, accelerator: str) -> Footprint:
        """Nobody knows what a user's command does."""
        return Footprint(disk_bytes=0, seconds=3 + (self.params.time or _ROUND_SECONDS * self.params.rounds))

    async def stage(self, context: StagingContext) -> None:
        """Put the client in place."""
        await install(context.shell, _PROGRAM)

    async def rehearse(self, context: StagingContext) -> None:
        """Run a command that does nothing."""
        nothing = self._options("true", f"{context.workload}.rehearsal")
        await ask(context.shell, _PROGRAM, nothing, deadline=_MARGIN)

    async def prepare(self, context: WorkloadContext) -> None:
        """Send the files, and run what makes ready, the other guest first."""
        params, places = self.params, [context.source]
        if context.target is not None:
            places.insert(0, context.target)
        folder = f"{_FOLDER}/{context.workload}"
        for shell in places:
            if (await shell.run(["id", "-u", params.user], check=False)).status != 0:
                raise WorkloadError(f"guest {shell.name} has no user {params.user}")
            await shell.run(["install", "-d", "-o", params.user, folder])
            for one in params.files:
                await shell.write(f"{folder}/{one.name}", one.content, mode=0o755 if one.is_executable else 0o644)
        if context.target is not None:
            await self._make_ready(context, context.target, "prepare_to", params.prepare_to)
        await self._make_ready(context, context.source, "prepare", params.prepare)

    async def _make_ready(self, context: WorkloadContext, shell: Shell, key: str, text: str | None) -> None:
        if text is None:
            return
        # No workload's name has a dot, so that none has this cgroup.
        name = f"{context.workload}.{key}"
        how = {"stays": True, "kept": f"{_KEPT}/{name}"}
        options = self._options(_with_address(text, context), name, folder=context.workload) | how
        account = await ask(shell, _PROGRAM, options, deadline=self.params.timeout + _MARGIN)
        try:
            with read_from_a_guest(f"the client of {key}"):
                self._demand_well(key, account)
        except WorkloadError as error:
            out, err = await _kept(shell, name)
            error.texts = {f"output of {key}": out, f"errors of {key}": err}
            raise

    def _options(self, text: str, group: str, folder: str = "") -> dict[str, Any]:
        """What the client is told, to run a text once."""
        return {
            "text": text,
            "folder": f"{_FOLDER}/{folder}" if folder else "/",
            "user": self.params.user if folder else "root",
            "rounds": 1,
            "time": None,
            "timeout": self.params.timeout,
            "most": MOST_KEPT,
            "group": group,
            "kept": "",
            "stays": False,
            "units": False,
        }

    def client(self, context: WorkloadContext) -> Client:
        """The command under its client."""
        params, name = self.params, context.workload
        options = self._options(_with_address(params.run, context), name, folder=name)
        how = {"rounds": params.rounds, "time": params.time, "kept": f"{_KEPT}/{name}", "units": True}
        return Client(command(_PROGRAM, options | how), deadline=params.timeout + _MARGIN)

    async def printed(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """What the client said of the rounds, and what these printed, also where they failed."""
        out, err = await _kept(context.source, context.workload)
        return {"account": finished.stdout, "output": out, "errors": err}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From the client's account, and the means over the rounds of what the scenario finds in their output."""
        params = self.params
        with read_from_a_guest(self.tool):
            account = last_object(texts["account"], self.tool)
            self._demand_well("the command", account)
            took, printed = float(account["seconds"]), list(_rounds(account, texts["output"], texts["errors"]))
        if not is_amount(account["seconds"]) or took <= 0:
            raise WorkloadError(f"{self.tool} reports {account['seconds']!r} s of work")
        if params.time is None and len(printed) != params.rounds:
            raise WorkloadError(f"the command ran {len(printed)} times, and {params.rounds} were asked for")
        if params.time is not None and took < params.time:
            raise WorkloadError(f"the command ran for {took:.3f} s, and {params.time:.3f} s were asked for")
        found = figures_in(printed, found_metrics(params.metrics), params.expect)
        return {RUN_TIME: took, _ROUNDS: len(printed) / took, **found}

    def _demand_well(self, what: str, account: Mapping[str, Any]) -> None:
        """Raises WorkloadError for a command that did not end well by itself, and alone."""
        last = said_lines([str(line) for line in account["last"]])
        if account["over"]:
            most = format_bytes(MOST_KEPT)
            raise WorkloadError(f"{what} printed more than {most}, and was ended; write what is no result to a file")
        if account["late"]:
            limit = format_seconds(self.params.timeout)
            raise WorkloadError(f"{what} took longer than its timeout of {limit}, and was ended{last}")
        if account["status"] != 0:
            raise WorkloadError(f"{what} exited with {account['status']}{last}")
        if account["left"]:
            names = ", ".join(map(str, account["left"][:5]))
            words = f"{what} left processes running ({names}), which were ended"
            raise WorkloadError(f"{words}; servers are started in prepare, and all else is waited for")
        # Accounts of older versions have no units.
        if units := account.get("units"):
            names = ", ".join(map(str, units[:5]))
            raise WorkloadError(f"{what} left a service running ({names}); servers are started in prepare")

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """The rounds'; the client starts before and writes the output behind."""
        rounds = round(values[_ROUNDS] * values[RUN_TIME])
        return ToolTime(values[RUN_TIME], self.around[accelerator] + rounds * _A_ROUND[accelerator])


async def _kept(shell: Shell, name: str) -> tuple[str, str]:
    """What was printed under a name, as the client keeps it."""
    out, err = [(await shell.run(["cat", f"{_KEPT}/{name}.{end}"])).stdout for end in ("out", "err")]
    return out, err


def _with_address(text: str, context: WorkloadContext) -> str:
    return text if context.target is None else text.replace(_TO, context.peer_address)


def _rounds(account: Mapping[str, Any], out: str, err: str) -> Iterator[Printed]:
    """The output of each round, by the number of characters that it printed. Raises ValueError."""
    at = [0, 0]
    for lengths in account["rounds"]:
        end = [at[0] + int(lengths[0]), at[1] + int(lengths[1])]
        yield Printed(out[at[0] : end[0]], err[at[1] : end[1]])
        at = end
    if at != [len(out), len(err)]:
        raise ValueError("the output is not as long as it says")
