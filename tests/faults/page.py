"""``docs/faults.md``: the table of all rows with what happened when each was tried last, as it was kept.

``python -m tests.faults.page`` writes the page again from what is kept in ``docs/evidence/faults.json``.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.faults.row import Row, all_rows
from tests.faults.trying import Tried
from vmlab.model.quantities import format_seconds
from vmlab.system.given_file import new_file

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "faults.md"
KEPT = DOCS / "evidence" / "faults.json"
_BLOCK = re.compile(r"(<!-- faults -->\n).*?(<!-- end -->)", re.DOTALL)
_HEAD = ["| fault | done | required | happened | s |", "| --- | --- | --- | --- | ---: |"]
_LONGEST = 400
_WHOLE = "all rows"
"""The name of what is kept of the last run of all rows, as no row has it."""


def kept() -> dict[str, dict[str, Any]]:
    """What is kept of each row by its name, and of the last run of all rows."""
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return found


def keep_whole(seconds: float, failed: int, lanes: int, load: float) -> None:
    """Keep how long a run of all rows took and how many of them failed, with so many at a time, and the load of the
    machine before it.
    """
    times = {"seconds": round(seconds), "load": round(load, 1), "date": time.strftime("%Y-%m-%d")}
    _write({**kept(), _WHOLE: {**times, "failed": failed, "lanes": lanes}})


def keep(tried: Tried) -> None:
    """Keep what came of a row, with date and machine."""
    entry = {
        "happened": tried.happened[:_LONGEST],
        "seconds": tried.seconds,
        "took": tried.took,
        "problems": list(tried.problems),
        "date": time.strftime("%Y-%m-%d"),
        "machine": _machine(),
    }
    _write({**kept(), tried.name: entry})


def _write(entries: Mapping[str, Mapping[str, Any]]) -> None:
    known = {name: one for name, one in sorted(entries.items()) if name in {*all_rows(), _WHOLE}}
    text = json.dumps(known, indent=1, ensure_ascii=False) + "\n"
    # Whoever ends the command meanwhile leaves the file whole.
    with new_file(KEPT) as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(text.encode())


def written(text: str, rows: Mapping[str, Row], results: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with its block as these rows and results make it."""
    lines = [*_summary(rows, results), "", *_HEAD, *(_line(row, results.get(row.name)) for row in rows.values()), ""]
    lines += _failures(rows, results)
    return _BLOCK.sub(lambda place: place[1] + "\n".join(lines).rstrip() + "\n" + place[2], text)


def write() -> None:
    """Write the page again."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), all_rows(), kept()), encoding="utf-8")


def _summary(rows: Mapping[str, Row], results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    done = {name: results[name] for name in rows if name in results}
    passed = sum(not one["problems"] for one in done.values())
    dates = sorted({one["date"] for one in done.values()})
    machines = sorted({one["machine"] for one in done.values()})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "never"
    return [
        f"{len(rows)} faults, {len(done)} of them tried ({span}): {passed} as required.",
        *_whole(results.get(_WHOLE)),
        *(f"Machine: {one}." for one in machines),
    ]


def _whole(run: Mapping[str, Any] | None) -> list[str]:
    if run is None:
        return []
    took = format_seconds(run["seconds"])
    failed = f"{run['failed']} not as required, " if run["failed"] else ""
    return [
        f"One run of all rows ({run['date']}): {failed}{took}, {run['lanes']} at a time, load before {run['load']}.",
        "Each row below shows its newest try.",
    ]


def _line(row: Row, result: Mapping[str, Any] | None) -> str:
    happened = "not tried yet" if result is None else ("**no:** " if result["problems"] else "") + result["happened"]
    seconds = "" if result is None or result["seconds"] is None else f"{result['seconds']:.1f}"
    # A message may name a command, too; it is shown as text, as no page promises that command.
    cells = (row.name, _cell(row.done), _cell(row.should), _cell(happened.replace("`", "")), seconds)
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    """Text in a table of Markdown, as it is, but for code."""
    escaped = re.sub(r"([|<>\[\]_*])", r"\\\1", " ".join(text.split()))
    return escaped.replace("\\*\\*no:\\*\\*", "**no:**")


def _failures(rows: Mapping[str, Row], results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [
        f"- {name}: {_cell('; '.join(results[name]['problems']).replace('`', ''))}"
        for name in rows
        if name in results and results[name]["problems"]
    ]
    return ["Not as required:", "", *lines] if lines else []


def _machine() -> str:
    qemu = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"version ([0-9.]+)", qemu.stdout)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = (f"{os.cpu_count()} CPUs", f"{memory:.0f} GiB", f"Linux {platform.release()}")
    return ", ".join((*parts, f"QEMU {version[1] if version else 'unknown'}", "guests emulated (TCG)"))


if __name__ == "__main__":
    write()
