"""`vmlab top`: the recorder alone, in the terminal or as JSON lines, with no run."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import click

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.cli.diagnostics import parsed, say
from vmlab.cli.interrupts import on_other_screen
from vmlab.cli.output import write_json_line, write_parts, write_text
from vmlab.cli.serving.metrics_server import Address, MetricsServer, is_loopback, read_address
from vmlab.cli.top_view import domain_lines, host_lines
from vmlab.lab.process.measuring_runs import host_queue
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    DiskSilent,
)
from vmlab.model.errors import UsageError, VmlabError
from vmlab.model.event import RunEnded
from vmlab.model.jsonable import jsonable
from vmlab.model.places import runs_folder
from vmlab.model.quantities import parse_seconds
from vmlab.model.sample import Sample
from vmlab.model.visible import Control, visible_line
from vmlab.report.words import silent_words
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE
from vmlab.system.text_width import first_columns
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.domains.hurting import DomainState, Recent, host_limits, ranked
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.source import THE_HOST
from vmlab.telemetry.speed_trace import period_to_watch

SCHEMA = "vmlab.top/1"
_AROUND = 5
"""Rows of a picture that are neither the host's nor its guests'."""
_HOME, _END_OF_LINE, _BELOW = Control("\x1b[H"), Control("\x1b[K\n"), Control("\x1b[J")


def _seconds(text: str) -> float:
    """``0.5``, ``500 ms`` or ``2 s`` to seconds. Raises ValueError for anything else."""
    return parse_seconds(text if text[-1:].isalpha() else f"{text} s")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per sample.")
@click.option(
    "--serve",
    metavar="ADDRESS:PORT",
    callback=parsed(read_address),
    help="Serve OpenMetrics at /metrics on this address, such as 127.0.0.1:9000; a port alone means loopback.",
)
@click.option(
    "--interval", default="1 s", show_default=True, callback=parsed(_seconds), help="Sampling interval, from 20 ms."
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Number of samples [default: until Ctrl-C].")
def top(as_json: bool, serve: Address | None, interval: float, count: int | None) -> None:
    """Watch this host live: CPU, memory, disks, KSM, pressure, and the host's own guests, without any run."""
    if serve is not None and (as_json or count is not None):
        raise UsageError("--serve goes on until Ctrl-C and prints no sample; leave out --json and --count")
    samples: SimpleQueue[Sample] = SimpleQueue()
    watched = _Watched(Domains(THE_HOST, notify=_note))
    try:
        host = Watched(lab_folders=[runs_folder()], scope="process", notify=_note)
        recorder = Recorder(interval, samples.put, host, speed=period_to_watch(interval), domains=watched.group)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    recorder.start()
    try:
        if serve is not None:
            _serve(samples, serve, interval)
        elif as_json:
            _follow(samples, count, lambda sample: write_json_line(watched.json_object(sample)))
        elif sys.stdout.isatty():
            _on_screen(samples, count, watched)
        else:
            _follow(samples, count, lambda sample: write_text("\n".join([_time(sample), *watched.lines(sample), ""])))
    finally:
        recorder.stop()


def _serve(samples: SimpleQueue[Sample], address: Address, interval: float) -> None:
    """Serve each sample until the next one, until a signal comes."""
    server = MetricsServer(address, interval)
    write_text(server.url)
    if not is_loopback(address):
        say("vmlab: anyone who reaches this address can read the metrics; the connection is not encrypted")
    say("vmlab: Ctrl-C ends it")
    server.start()
    try:
        _follow(samples, None, server.take)
    finally:
        server.close()


class _Watched:
    """The host's own guests beside the samples of the host."""

    def __init__(self, group: Domains) -> None:
        self.group = group
        self._recent = Recent()
        self.silent = SilentDisks()

    def states(self, sample: Sample) -> list[DomainState]:
        """Of the newest samples, this one included."""
        self._recent.take(sample)
        return ranked(self._recent.get, self.group.domains)

    def json_object(self, sample: Sample) -> dict[str, Any]:
        """See `json_object`, with what is silent in runs."""
        return {**json_object(sample, self.states(sample)), "silent_disks": self.silent.words()}

    def lines(self, sample: Sample, rows: float = math.inf) -> list[str]:
        """The host, then its guests; the guests first where not all of it has room in `rows`."""
        states = self.states(sample)
        limits = host_limits(self._recent.get, self.group.domains)
        silent = [f"Silent    {words}" for words in self.silent.words()]
        host = [visible_line(line) for line in [*silent, *host_lines(sample)]]
        guests = domain_lines(states, sample.get("domains_of_labs"), limits)
        return [*host, *guests] if len(host) + len(guests) <= rows or not guests else [*guests, "", *host]


def json_object(sample: Sample, states: Iterable[DomainState] = ()) -> dict[str, Any]:
    """The object of one tick: the keys of a cell's ``host`` and more; null for what could not be read."""
    values = jsonable(sample.host())
    domains = [_domain_object(state) for state in states]
    return {"schema": SCHEMA, "wall": sample.wall, "mono": sample.mono, **values, "domains": domains}


def _domain_object(state: DomainState) -> dict[str, Any]:
    """A domain: who it is, what it takes and lacks, its figures, and its disks with theirs."""
    body = jsonable(state.domain)
    take = state.take
    disks = [{**disk, **jsonable(_bare(state.disks[disk["target"]]))} for disk in body.pop("disks")]
    return {
        **body,
        "takes": None if take is None else {"resource": take.resource, "percent": take.percent, "short": take.is_short},
        "at_limit": [limit.words for limit in state.limits],
        **jsonable(_bare(state.figures)),
        "disks": disks,
    }


def _bare(figures: Mapping[str, float]) -> dict[str, float]:
    """Without the beginning that all of them have."""
    return {name.removeprefix("domain_"): value for name, value in figures.items()}


def _follow(samples: SimpleQueue[Sample], count: int | None, show: Callable[[Sample], None]) -> None:
    for _ in itertools.count() if count is None else range(count):
        show(samples.get())


def _on_screen(samples: SimpleQueue[Sample], count: int | None, watched: _Watched) -> None:
    """Draw over the last picture, on the terminal's other screen."""

    def show(sample: Sample) -> None:
        size = shutil.get_terminal_size()
        inner = watched.lines(sample, size.lines - _AROUND)
        lines = fitting([_time(sample), "", *inner, "", "Ctrl-C ends."], size)
        write_parts(_HOME, *(part for line in lines for part in (line, _END_OF_LINE)), _BELOW)

    with on_other_screen(sys.stdout):
        _follow(samples, count, show)
    write_text("")


def fitting(lines: Sequence[str], size: os.terminal_size) -> list[str]:
    """`lines` on a terminal of this size, which would scroll or wrap them: the last of those that fit says how many do
    not.
    """
    rows = max(2, size.lines - 1)
    shown = [first_columns(line, size.columns) for line in lines]
    if len(shown) <= rows:
        return shown
    more = f"{len(shown) - rows + 1} more lines; `vmlab` lists all guests. Ctrl-C ends."
    return [*shown[: rows - 1], first_columns(more, size.columns)]


def _time(sample: Sample) -> str:
    return datetime.fromtimestamp(sample.wall).astimezone().isoformat(sep=" ", timespec="milliseconds")


def _note(line: str) -> None:
    say(f"vmlab: {visible_line(line)}")


_EVERY = 5.0
_KINDS = (CellStarted, DiskSilent, CellEnded, RunEnded)


class SilentDisks:
    """Looks into the records of the runs every few seconds, as far as this user may read them."""

    def __init__(self) -> None:
        self._looked = -_EVERY
        self._silent: dict[str, tuple[DiskSilent, ...]] = {}

    def words(self) -> list[str]:
        """A sentence for each run with such a disk."""
        now = time.monotonic()
        if now - self._looked >= _EVERY:
            measuring = (one for one in host_queue().measuring if one.folder)
            self._looked, self._silent = now, {one.run: silent_in(Path(one.folder) / STORE) for one in measuring}
        found = {run: silent_words(silent, now) for run, silent in self._silent.items()}
        return [f"run {run}: {words}" for run, words in found.items() if words]


def silent_in(store: Path) -> tuple[DiskSilent, ...]:
    """The disks that answer nothing now, by the record of a run; () where it cannot be read."""
    try:
        with RunReader(store) as reader:
            timeline = RunTimeline.read(reader, _KINDS)
    except (VmlabError, OSError):
        return ()
    return () if timeline.cell is None else tuple(timeline.cell.silent.values())
