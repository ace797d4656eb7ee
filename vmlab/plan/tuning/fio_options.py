"""A scenario from options of fio: one guest with a data disk, on which fio works."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vmlab.model.errors import ScenarioError, UsageError
from vmlab.model.quantities import LARGEST_BYTES, parse_seconds
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.plan.checking import read_cell
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.plan.scenario_file.problems import ScenarioErrors
from vmlab.plan.scenario_file.written_text import written_text
from vmlab.plan.tuning.tuning_scenarios import GENERATED

_SIZE = re.compile(r"([0-9]+)(?:([kmgt])(?:i?b)?|b)?", re.ASCII | re.IGNORECASE)
_POWERS = ("", "k", "m", "g", "t")
_LEAST_DISK = 2**30
_SHORTEST = 1e-3
_GUEST, _WORKLOAD = "vm", "disk"
_OPTION_OF = {"block": "bs", "size": "filesize", "depth": "iodepth", "jobs": "numjobs", "time": "runtime"}
"""fio's names for keys of the workload."""


def fio_bytes(text: str) -> int:
    """``4k``, ``64m`` or ``1g`` as fio reads it, in powers of 1024. Raises ValueError for anything else."""
    found = _SIZE.fullmatch(text.strip()) if len(text) < 40 else None
    size: int = int(found[1]) * 1024 ** _POWERS.index((found[2] or "").lower()) if found else 0
    if not 0 < size <= LARGEST_BYTES:
        raise ValueError("is no size of fio's, such as 4k, 64m or 1g")
    return size


def fio_seconds(text: str) -> float:
    """``3`` or ``3s`` in seconds. Raises ValueError for anything else, and for no time at all."""
    seconds = float(text) if text.isascii() and text.isdigit() and len(text) < 7 else parse_seconds(text)
    if seconds < _SHORTEST:
        raise ValueError("must be more than 0" if not seconds else "must be at least 1 ms")
    return seconds


def _of_options(words: str) -> str:
    """What is wrong with the scenario's workload, in the names of fio's options; no user has seen the scenario."""
    found = re.search(rf"workloads\.{_WORKLOAD}(?:\.(\w+))?: (.*)", words)
    if found is None:
        return f"such a disk cannot be made: {words}"
    return f"--{_OPTION_OF[found[1]]} {found[2]}" if found[1] in _OPTION_OF else f"options of fio: {found[2]}"


@dataclass(frozen=True, slots=True)
class FioOptions:
    """Options of fio by their own names; sizes in bytes, `runtime` in seconds."""

    rw: str
    bs: int = 4096
    filesize: int = 64 * 2**20
    iodepth: int = 1
    numjobs: int = 1
    runtime: float = 2.0
    ioengine: str = "libaio"
    direct: bool = True

    def scenario(self) -> ScenarioFile:
        """The scenario. Raises UsageError, with the option, for what fio, or its workload, does not do."""
        try:
            file = read(GENERATED, written_text(self._values()), {}, files={})
            read_cell(file.document)
        except ScenarioError as error:
            problems = error.problems if isinstance(error, ScenarioErrors) else (error,)
            raise UsageError(min(_of_options(str(one.args[0])) for one in problems)) from error
        return file

    def _values(self) -> dict[str, Any]:
        # A disk is whole blocks of 4 KiB.
        written = -(-self.filesize * self.numjobs // 4096) * 4096
        work = {
            "kind": "fio",
            "on": _GUEST,
            "rw": self.rw,
            "block": f"{self.bs} B",
            "size": f"{self.filesize} B",
            "depth": self.iodepth,
            "jobs": self.numjobs,
            "time": f"{self.runtime:.6f}".rstrip("0").rstrip(".") + " s",
            "engine": self.ioengine,
            "direct": self.direct,
        }
        guest = {"vcpus": 2, "memory": "512 MiB", "data": f"{max(_LEAST_DISK, 2 * written)} B"}
        metric = "iops" if self.rw.startswith("rand") else "throughput"
        return {
            "name": f"fio-{self.rw}",
            "guests": {_GUEST: guest},
            "workloads": {_WORKLOAD: work},
            "table": {"rows": WORKLOADS, "columns": METRICS, "metrics": [metric]},
        }
