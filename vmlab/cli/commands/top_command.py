"""`vmlab top`: the recorder alone, in the terminal or as JSON lines, with no run."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from datetime import datetime
from queue import SimpleQueue

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json_line, write_screen, write_text
from vmlab.cli.top_view import host_lines
from vmlab.model.places import runs_folder
from vmlab.model.sample import Sample
from vmlab.model.units import parse_seconds
from vmlab.model.visible import Control
from vmlab.telemetry.recorder import Recorder

SCHEMA = "vmlab.top/1"
_HOME, _END_OF_LINE, _BELOW = Control("\x1b[H"), Control("\x1b[K\n"), Control("\x1b[J")
_OTHER_SCREEN, _FIRST_SCREEN = Control("\x1b[?1049h"), Control("\x1b[?1049l")


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """``0.5``, ``500 ms`` or ``2 s`` to seconds. Raises BadParameter for anything else."""
    try:
        return parse_seconds(value if value[-1:].isalpha() else f"{value} s")
    except ValueError as error:
        raise click.BadParameter(f"{value[:40]!r} {error}", ctx, param) from None


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per sample and line.")
@click.option("--interval", default="1 s", show_default=True, callback=_seconds, help="Sampling interval, from 20 ms.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Number of samples [default: until Ctrl-C].")
def top(as_json: bool, interval: float, count: int | None) -> None:
    """Watch this host live: CPU, memory, disks, KSM and pressure, without any run."""
    samples: SimpleQueue[Sample] = SimpleQueue()
    try:
        recorder = Recorder(
            interval, samples.put, None, None, [runs_folder()], notify=_note, scope="process", speed=True
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    recorder.start()
    try:
        if as_json:
            _follow(samples, count, lambda sample: write_json_line(json_object(sample)))
        elif sys.stdout.isatty():
            _on_screen(samples, count)
        else:
            _follow(samples, count, lambda sample: write_text("\n".join([_time(sample), *host_lines(sample), ""])))
    finally:
        recorder.stop()


def json_object(sample: Sample) -> dict[str, str | float | None]:
    """The object of one tick: the keys of a cell's ``host`` and more; null for what could not be read."""
    values = {name: value if math.isfinite(value) else None for name, value in sample.host().items()}
    return {"schema": SCHEMA, "wall": sample.wall, "mono": sample.mono, **values}


def _follow(samples: SimpleQueue[Sample], count: int | None, show: Callable[[Sample], None]) -> None:
    seen = 0
    while count is None or seen < count:
        show(samples.get())
        seen += 1


def _on_screen(samples: SimpleQueue[Sample], count: int | None) -> None:
    """Draw over the last picture, on the terminal's alternate screen; the normal screen is restored at the end."""

    def show(sample: Sample) -> None:
        lines = [_time(sample), "", *host_lines(sample), "", "Ctrl-C ends."]
        write_screen(_HOME, *(part for line in lines for part in (line, _END_OF_LINE)), _BELOW)

    write_screen(_OTHER_SCREEN)
    try:
        _follow(samples, count, show)
    finally:
        write_screen(_FIRST_SCREEN, "\n")


def _time(sample: Sample) -> str:
    return datetime.fromtimestamp(sample.wall).astimezone().isoformat(sep=" ", timespec="milliseconds")


def _note(line: str) -> None:
    say(f"vmlab: {line}")
