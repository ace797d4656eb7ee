"""`vmlab record` and `advise`: the host and its own guests over time, a run without workloads, and its advice."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import click

from vmlab.analysis.advice.advice import advice_document, demand_recording
from vmlab.analysis.advice.advice import advise as advice_of
from vmlab.analysis.document import run_document, stored_document
from vmlab.analysis.shape import RunDocument
from vmlab.cli.diagnostics import parsed, say
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.one_run import print_id, print_measured
from vmlab.cli.output import page_width, write_json, write_text
from vmlab.lab.commands.stopping import stop_run
from vmlab.lab.process.host_recording import (
    LEAST_BYTES,
    LEAST_INTERVAL,
    MOST_INTERVAL,
    RecordingRequest,
    start_recording,
)
from vmlab.lab.process.run_ending import ended
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import host_for_plans
from vmlab.model.errors import ExitCode, StoreError, UsageError
from vmlab.model.quantities import format_seconds, parse_bytes, parse_seconds
from vmlab.model.visible import visible_line, visible_values
from vmlab.report.run.recording_text import advice_text
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run
from vmlab.system.given_file import new_file
from vmlab.system.held_folder import suspect, why_lost

_LOOK_SECONDS = 0.2


def _seconds(text: str) -> float:
    """Raises ValueError."""
    if (seconds := parse_seconds(text)) < LEAST_INTERVAL:
        raise ValueError("is less than 20 ms")
    return seconds


def _bytes(text: str) -> int:
    """Raises ValueError."""
    if (size := parse_bytes(text)) < LEAST_BYTES:
        raise ValueError("is less than 1 MB")
    return size


@click.command()
@click.option("--for", "duration", metavar="TIME", callback=parsed(_seconds), help="How long, such as 2h.")
@click.option("--detach", is_flag=True, help="Record in the background; `vmlab stop` ends it.")
@click.option(
    "--interval", default="1 s", show_default=True, callback=parsed(_seconds), help="Sampling interval, from 20 ms."
)
@click.option(
    "--keep",
    default="24 h",
    show_default=True,
    callback=parsed(_seconds),
    help="How far back samples are kept.",
)
@click.option("--most", default="1 GB", show_default=True, callback=parsed(_bytes), help="Maximum disk space to use.")
@click.option(
    "--blktrace", is_flag=True, help="Also trace disk requests, to tell sequential from random, for `advise -o`."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, as `show --json` does.")
def record(
    duration: float | None, detach: bool, interval: float, keep: float, most: int, blktrace: bool, as_json: bool
) -> None:
    """Record this host and its own guests, read only, as a run without workloads; Ctrl-C ends it.

    `show`, `replay`, `report`, `export`, `compare` and `advise` read the recording.
    """
    if interval > MOST_INTERVAL:
        raise UsageError("--interval: at most one hour")
    with InterruptedLater() as interrupted:
        with interrupted.obeyed():
            request = RecordingRequest(duration, interval, keep, most, blktrace)
        folder = start_recording(request)
        if detach:
            print_id(folder.id, as_json=as_json)
            return
        # Unlike the path, this finds out what became of the folder.
        with folder.held():
            _wait(folder, interrupted, duration)
    print_measured(stored_document(folder.store), as_json=as_json)
    sys.exit(ExitCode.PASSED)


def _wait(folder: RunFolder, interrupted: InterruptedLater, duration: float | None) -> None:
    """Until it has ended; the first Ctrl-C ends it in the regular way. Raises StoreError where it broke off."""
    say(f"recording {folder.id}" + (f" for {format_seconds(duration)}" if duration else "") + "; Ctrl-C ends it")
    asked = False
    while folder.alive():
        if interrupted.count and not asked:
            asked = True
            try:
                stop_run(folder, origin=interrupted.number.name, number=interrupted.number)
            except UsageError:
                continue  # It has just ended.
        time.sleep(_LOOK_SECONDS)
    suspect(folder.store)
    if why := why_lost():
        raise StoreError(f"the recording has ended: {why}")
    if ended(folder) is None:
        raise StoreError(f"the recording broke off; {folder.log} has its last output")


@click.command()
@click.argument("run", default="last", metavar="[RUN]")
@click.option("--json", "as_json", is_flag=True, help="Print advice and evidence as JSON.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write a scenario that copies a disk's load.")
@click.option("--disk", metavar="GUEST/DISK", default="", help="The disk to copy [default: the busiest with advice].")
def advise(run: str, as_json: bool, output: Path | None, disk: str) -> None:
    """From the recording RUN, say for which disks of this host's own guests the cache mode matters, and why.

    With -o, write a scenario with a guest like one of these, in which fio copies one disk's load. For a run of that
    scenario, say whether the copy matched the recording, and give the answer.
    """
    from vmlab.analysis.advice.likeness import copied_document, copied_of
    from vmlab.report.run.likeness_text import copied_text

    if disk and output is None:
        raise UsageError("--disk goes with -o")
    if as_json and output is not None:
        raise UsageError("--json does not go with -o, which writes a scenario")
    with RunReader(resolve_run(run)) as reader:
        document = run_document(reader)
        if output is not None:
            _copy(reader, document, disk, output)
            return
        copied = copied_of(reader, document)
    if as_json:
        write_json(advice_document(document) if copied is None else copied_document(copied))
    elif copied is not None:
        write_text(copied_text(copied, page_width()).rstrip("\n"))
    else:
        demand_recording(document)
        write_text(advice_text(advice_of(visible_values(document)), page_width()).rstrip("\n"))


def _copy(reader: RunReader, document: RunDocument, disk: str, output: Path) -> None:
    """Write the scenario that copies the load of a disk."""
    from vmlab.analysis.advice.load_scenario import load_scenario
    from vmlab.plan.copied_guest.trial import Trial

    name, text = load_scenario(reader, document, disk, Trial(host_for_plans()))
    with new_file(output) as file:
        file.write(text.encode())
    say(visible_line(f"the load of {name} is in {output}; measure it: vmlab run {shlex.quote(str(output))}"))
