"""Records domains whose best cache mode is known, copies their loads, and counts how often the copy answers rightly.

``python -m tests.copied_loads [LOAD…] --keep FOLDER`` starts guests, as root; an attempt takes half an hour or more.
What FOLDER has already is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.checklist import say
from tests.copied_loads.loads import LOADS, changes_of, faults_of


def main() -> int:
    """Print a line for each attempt, and for each load how many were right; 1 where one was not."""
    parser = argparse.ArgumentParser(prog="python -m tests.copied_loads", description=__doc__)
    parser.add_argument("load", nargs="*", help=f"of {', '.join(LOADS)}; all by default")
    parser.add_argument("--times", type=int, default=5, metavar="N", help="attempts of each load [default: 5]")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin none after so many")
    parser.add_argument("--record", default="5m", metavar="TIME", help="how long to record [default: 5m]")
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="keep there what each attempt found")
    chosen = parser.parse_args()
    chosen.keep.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    right: dict[str, list[bool]] = {name: [] for name in chosen.load or LOADS}
    for number in range(1, chosen.times + 1):
        for name, results in right.items():
            kept = chosen.keep / f"{name}-{number}.json"
            if not kept.exists():
                if time.monotonic() - begun > 60 * chosen.minutes:
                    continue
                _attempt(name, kept, chosen.record)
            results.append(_told(name, number, kept))
    for name, results in right.items():
        say(f"{name}: right in {sum(results)} of {len(results)}")
    return int(not all(all(results) for results in right.values()))


def _attempt(name: str, kept: Path, recorded: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    began = time.monotonic()
    try:
        argv = [sys.executable, "-m", "tests.copied_loads.inside", name, str(folder), recorded]
        with kept.with_suffix(".log").open("w") as log:
            done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
        lines = done.stdout.splitlines()
        found = json.loads(lines[-1]) if done.returncode == 0 else None
        document = {"found": found, "seconds": round(time.monotonic() - began), "cpus": os.cpu_count()}
        kept.write_text(json.dumps(document, indent=1) + "\n")
        if (scenario := folder / "try.yaml").exists():
            shutil.copy(scenario, kept.with_suffix(".yaml"))
    finally:
        shutil.rmtree(folder)


def _told(name: str, number: int, kept: Path) -> bool:
    document = json.loads(kept.read_text())
    found = document["found"]
    if found is None:
        say(f"{name} {number}: FAILED after {document['seconds']} s; see {kept.with_suffix('.log')}")
        return False
    faults = faults_of(LOADS[name], found["truth"], found["answer"])
    parts = ", ".join(f"{way} {part:.2f}" for way, part in changes_of(found["truth"]).items())
    say(f"{name} {number}: {'; '.join(faults) or 'right'}; in the domain {parts} of the time; {document['seconds']} s")
    return not faults


if __name__ == "__main__":
    sys.exit(main())
