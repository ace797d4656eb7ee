"""Records domains whose best cache mode is known, copies their loads, and counts how often the copy answers rightly.

``python -m tests.copied_loads [LOAD…] --logs FOLDER`` starts guests, as root; an attempt takes half an hour. What
came of each is kept in docs/evidence/copied-loads.json, and an attempt that is there is not made again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.checklist import say
from tests.copied_loads.loads import KEPT, LOADS, changes_of, faults_of, told_of
from tests.measured_on import commit, host


def main() -> int:
    """Print a line for each attempt, and for each load how many were right; 1 where one was not."""
    parser = argparse.ArgumentParser(prog="python -m tests.copied_loads", description=__doc__)
    parser.add_argument("load", nargs="*", help=f"of {', '.join(LOADS)}; all by default")
    parser.add_argument("--times", type=int, default=5, metavar="N", help="attempts of each load [default: 5]")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin none after so many")
    parser.add_argument("--record", default="5m", metavar="TIME", help="how long to record [default: 5m]")
    parser.add_argument("--logs", type=Path, required=True, metavar="FOLDER", help="for outputs and scenarios")
    chosen = parser.parse_args()
    chosen.logs.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    names = chosen.load or list(LOADS)
    for number in range(1, chosen.times + 1):
        for load in names:
            kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            if f"{load}-{number}" not in kept and time.monotonic() - begun <= 60 * chosen.minutes:
                kept[f"{load}-{number}"] = _attempt(load, chosen.logs / f"{load}-{number}", chosen.record)
                KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    known = json.loads(KEPT.read_text())
    for name, one in known.items():
        parts = ", ".join(f"{way} {part:.2f}" for way, part in changes_of(one["truth"]).items())
        say(f"{name}: {'; '.join(one['faults']) or 'right'}; in the domain {parts} of the time; {one['seconds']} s")
    for load in names:
        right = [not one["faults"] for one in known.values() if one["load"] == load]
        say(f"{load}: right in {sum(right)} of {len(right)}")
    return int(any(one["faults"] for one in known.values() if one["load"] in names))


def _attempt(load: str, logs: Path, recorded: str) -> dict[str, Any]:
    """What is kept of one. Ends the program where it came to no answer."""
    folder = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    began, date = time.monotonic(), f"{datetime.now(UTC):%Y-%m-%d}"
    try:
        argv = [sys.executable, "-m", "tests.copied_loads.inside", load, str(folder), recorded]
        with logs.with_suffix(".log").open("w") as log:
            done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
        if (scenario := folder / "try.yaml").exists():
            shutil.copy(scenario, logs.with_suffix(".yaml"))
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        sys.exit(f"{logs.name}: exit code {done.returncode}; see {logs.with_suffix('.log')}")
    found = json.loads(done.stdout.splitlines()[-1])
    copied = told_of(found["answer"]["copied"])
    return {
        "load": load,
        "date": date,
        "host": host(),
        "commit": commit(),
        "seconds": round(time.monotonic() - began),
        "truth": found["truth"],
        "copied": copied,
        "faults": faults_of(LOADS[load], found["truth"], copied),
    }


if __name__ == "__main__":
    sys.exit(main())
