"""What is kept of a release, for `test_releases.py`: ``python -m tests.releases.keeping`` keeps that of this version.

A recorded run as an archive, an event of every kind with every field, the shipped scenarios, and what commands print
of the run. docs/development/releasing.md says when; what is kept is never changed.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tests.cli.called import ended
from vmlab import __version__
from vmlab.model.checked import Keys, check_of
from vmlab.model.event import Event
from vmlab.model.event_json import to_json

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "kept"
ARCHIVE, EVENTS, PRINTED, SCENARIOS = "run.vmlab", "events.jsonl", "printed.json.gz", "scenarios"
_RECORDING = ROOT / "vmlab/report/demo/run.sqlite"
COMMANDS = (
    "ls --json",
    "show last --json",
    "show last --cell 1 --raw --json",
    "show last --phases --json",
    "compare last --json",
)
"""They read the newest run, which is the kept one."""
_VALUES = (1.5, 1, 0, True, "a", None, [1, 2], [1000, 10, 70])
"""One of them is right for each plain type, and for each list with a condition."""


def example(hint: Any) -> Any:
    """A value of a field's type that has every key which the type names."""
    return next(value for value in _examples(hint) if check_of(hint)(value))


def _examples(hint: Any) -> Iterator[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        keys = [extra.types for extra in arguments[1:] if isinstance(extra, Keys)]
        yield from [{name: example(one) for name, one in types.items()} for types in keys]
        yield from _examples(arguments[0])
    elif origin in (Union, UnionType):
        yield from [example(one) for one in arguments]
    elif origin is list:
        yield [example(arguments[0])]
    elif origin is dict:
        yield {"a": example(arguments[1])}
    yield from _VALUES


def printed() -> dict[str, Any]:
    """What each of the commands prints now, read from its JSON, and the rows of the exported CSV."""
    found = {command: json.loads(_output(command)) for command in COMMANDS}
    for run in found["ls --json"]["runs"]:
        # What a folder takes on the disk is a matter of the disk.
        del run["bytes"]
    with tempfile.TemporaryDirectory() as folder:
        _output(f"export last -o {folder}/run.csv")
        with Path(folder, "run.csv").open(newline="", encoding="utf-8") as file:
            found["export last -o run.csv"] = list(csv.DictReader(file))
    return found


def _output(command: str) -> str:
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as output:
        code = ended(*command.split())
    output.seek(0)
    assert code == 0, command
    return output.read()


def lost(kept: Any, now: Any, place: str = "") -> Iterator[str]:
    """Where `now` lacks or contradicts what was `kept`: keys may have come, and sentences may have other words."""
    if isinstance(kept, Mapping) and isinstance(now, Mapping):
        for key, value in kept.items():
            if key in now:
                yield from lost(value, now[key], f"{place}/{key}")
            else:
                yield f"{place}/{key} is gone"
    elif isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        for number, (value, other) in enumerate(zip(kept, now, strict=True)):
            yield from lost(value, other, f"{place}/{number}")
    elif not _says_the_same(kept, now):
        yield f"{place} was {kept!r:.60} and is {now!r:.60}"


def _says_the_same(kept: Any, now: Any) -> bool:
    if type(kept) is not type(now):
        return False
    if isinstance(kept, str):
        return kept == now or (" " in kept and " " in now)
    # From Python 3.12 on sums of floats have another last digit.
    return math.isclose(kept, now, rel_tol=1e-9) if isinstance(kept, float) else kept == now


def read_printed(release: Path) -> dict[str, Any]:
    """What the commands of a release printed of its run."""
    found: dict[str, Any] = json.loads(gzip.decompress((release / PRINTED).read_bytes()))
    return found


def keep(release: Path) -> None:
    """Keep what this version writes."""
    shutil.copytree(ROOT / "scenarios", release / SCENARIOS, ignore=shutil.ignore_patterns("*.json"))
    lines = [to_json(cls(**_fields(cls))) for _, cls in sorted(Event.registry.items())]
    (release / EVENTS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        _output(f"export {_RECORDING} -o {release / ARCHIVE}")
        _output(f"import {release / ARCHIVE}")
        text = json.dumps(printed(), separators=(",", ":")).encode()
    (release / PRINTED).write_bytes(gzip.compress(text, mtime=0))


def _fields(cls: type[Event]) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: example(hints[field.name]) for field in fields(cls)}


if __name__ == "__main__":
    kept = KEPT / __version__
    if kept.exists():
        sys.exit(f"{kept} is there; what a release wrote is never changed")
    keep(kept)
