"""The line of comma-separated values that bonnie++ 2.00 prints, by the field names of its ``bon_csv2txt(1)``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.workloads.verification import demand_one_report

STAGES = ("putc", "put_block", "rewrite", "getc", "get_block", "seeks")
BY_CHARACTER = ("putc", "getc")
_ROUNDED = 0.5
"""Rates are whole KiB in a second, and whole seeks below 10,000."""
_FIRST = 9
"""Fields 9 to 20: rate and CPU of each stage in this order."""
_FIELDS = 50
_FORMAT = "1.98"
_UNITS = {"k": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_KIB = 1024
MACHINE = "vmlab"
"""The name that bonnie++ is given for its table."""
_TABLE = re.compile(rf"^{MACHINE} +[0-9]+[kMGT](?::([0-9]+)(k?))? ", re.MULTILINE)
_USUAL_CHUNK = 8192


@dataclass(frozen=True, slots=True)
class Stage:
    """`rate` in bytes per second, seeks in seeks per second; `cpu` in percent of one processor."""

    rate: float
    cpu: float


@dataclass(frozen=True, slots=True)
class BonnieReport:
    """`size` of all files and `chunk` in bytes; only stages that ran."""

    size: int
    chunk: int
    concurrency: int
    stages: dict[str, Stage]


def stage_seconds(name: str, stage: Stage, size: int, characters: int, seeks: int) -> float:
    """The least that a stage took, by its rate as it was rounded: over all files, or over so many `characters`."""
    if name == "seeks":
        return seeks / (stage.rate + _ROUNDED)
    return (characters if name in BY_CHARACTER else size) / (stage.rate + _ROUNDED * _KIB)


class TooQuick(WorkloadError):
    """A stage took less than half a second, so that bonnie++ printed no figure; `stage` names it."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(f"bonnie++'s stage {stage} was too quick to be measured; give it more")


def parse_bonnie(text: str) -> BonnieReport:
    """Find the line in what bonnie++ printed. Raises TooQuick, or WorkloadError where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.startswith(f"{_FORMAT},")]
    if len(lines) != 1:
        last = text.strip().splitlines()[-1][:200] if text.strip() else ""
        raise WorkloadError(f"bonnie++ printed {len(lines)} lines of figures, not one; its last line is {last!r}")
    fields = lines[0].split(",")
    size = re.fullmatch(r"([0-9]+)([kMGT])", fields[5]) if len(fields) == _FIELDS else None
    if size is None or not fields[3].isdigit():
        raise WorkloadError(f"bonnie++ printed a line that cannot be read: {lines[0][:200]!r}")
    found = ((name, _stage(name, *fields[at : at + 2])) for name, at in zip(STAGES, range(_FIRST, 21, 2), strict=True))
    return BonnieReport(
        size=int(size[1]) * _UNITS[size[2]],
        chunk=_chunk(text),
        concurrency=int(fields[3]),
        stages={name: stage for name, stage in found if stage is not None},
    )


def _chunk(text: str) -> int:
    """Version 2.00a leaves this field of the line empty; its table has it after the size, unless it is the default."""
    row = _TABLE.search(text)
    if row is None:
        raise WorkloadError("bonnie++ printed no table")
    demand_one_report(text, _TABLE.pattern, tool="bonnie++")
    return int(row[1]) * (_KIB if row[2] else 1) if row[1] else _USUAL_CHUNK


def _stage(name: str, rate: str, cpu: str) -> Stage | None:
    """A stage that did not run has empty fields, and one that was too quick has plus signs."""
    if rate == "" and cpu == "":
        return None
    if rate.startswith("+"):
        raise TooQuick(name)
    try:
        return Stage(float(rate) * (1 if name == "seeks" else _KIB), float(cpu))
    except ValueError:
        raise WorkloadError(f"bonnie++ printed {rate!r} and {cpu!r} for its stage {name}") from None
