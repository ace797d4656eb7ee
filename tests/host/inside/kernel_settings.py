"""Settings of that host's disk and memory: as the kernel has them while cells run, and back whatever happens."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.host.inside.lab import (
    STATE,
    measured,
    processes,
    require,
    run_folder,
    started,
    stopped,
    tell,
    vmlab,
    wait_until,
)

_SCENARIO = Path(__file__).with_name("kernel_settings.yaml")
_VM = Path("/proc/sys/vm")
_DIRTY_BYTES = 100 * 2**20
_ASKED: dict[str, dict[str, str | int]] = {
    "queue": {"scheduler": "none", "nr_requests": 32},
    "memory": {"swappiness": 7, "dirty_ratio": 9},
    "all": {"scheduler": "mq-deadline", "nr_requests": 48, "swappiness": 7, "dirty_ratio": 9},
}
_SET_SECONDS = 900.0
_END_SECONDS = 120.0
_LONG = ("--set", "workloads.blocks.time=600 s")
"""For the first cell, which has all of them."""


def tried() -> None:
    """A run of all of them; then, with dirty pages limited in percent, one whose runner is killed, and with bytes one
    whose launcher is.
    """
    STATE.mkdir(parents=True, exist_ok=True)
    were = _now()
    _require_cells(measured(str(_SCENARIO)))
    require(_now() == were, f"after a run there is {_now()}, and not {were}")
    for limit, victim in (("dirty_ratio", "runner"), ("dirty_bytes", "launcher")):
        was = _now()
        (_VM / limit).write_text(str(_DIRTY_BYTES if limit == "dirty_bytes" else 25))
        try:
            _kill(victim, _now())
        finally:
            back = "dirty_bytes" if was["dirty_bytes"] != "0" else "dirty_ratio"
            (_VM / back).write_text(was[back])


def _require_cells(document: dict[str, Any]) -> None:
    cells = {str(cell["axes"]["way"]): cell["settings"]["host"] for cell in document["cells"]}
    require(set(cells) == {"usual", *_ASKED}, f"cells of {sorted(cells)}")
    for way, asked in _ASKED.items():
        found = {name: cells[way][name] for name in asked}
        require(found == asked, f"in the cell of {way} there was {found}")


def _kill(victim: str, before: dict[str, str]) -> None:
    run = started(str(_SCENARIO), *_LONG)
    with stopped(run):
        wait_until(lambda: _now() != before, _SET_SECONDS, "the run's settings")
        pid = int(json.loads((run_folder(run) / "runner.json").read_text())[f"{victim}_pid"])
        tell(f"{_now()}; kill -9 {pid} ({victim})")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not processes(run), _END_SECONDS, f"the end of a run without its {victim}")
    vmlab("clean", "--json")
    require(_now() == before, f"after kill -9 of the {victim} there is {_now()}, and not {before}")


def _now() -> dict[str, str]:
    """The settings of the disk below the runs, and of the kernel's memory."""
    device = STATE.stat().st_dev
    partition = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    queue = (partition.parent if (partition / "partition").exists() else partition) / "queue"
    files = [queue / name for name in ("scheduler", "nr_requests", "read_ahead_kb")]
    files += sorted((queue / "iosched").glob("*"))
    files += [_VM / name for name in ("swappiness", "dirty_ratio", "dirty_bytes", "dirty_background_ratio")]
    return {file.name: file.read_text().strip() for file in files}
