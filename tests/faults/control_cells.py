"""`make control-cells`: many short cells on a quiet machine, to see whether the watches cry for nothing.

A third of the cells each is of one guest that computes, of one that reads its data disk, and of two with a network
between them. An alarm is a reason or a notice of `lab/cell/undisturbed.py`; other reasons, such as other load, are
counted apart. Runs are kept in a folder, and a further start goes on with the cells that are left (`vmlab resume`).
What came of them is kept in docs/evidence/control-cells.json; cells of other machines there count, too. It needs root
and the guest image. Exit code 0 means no alarm so far; 1 that there was one, or that a run could not go on.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.checklist import say
from tests.e2e.conftest import Home
from tests.measured_on import commit
from vmlab.model.errors import ExitCode
from vmlab.model.run import Outcome

_GUEST = "{vcpus: 1, memory: 256 MiB}"
KINDS = {
    "cpu": f"""\
guests: {{vm: {_GUEST}}}
workloads:
  primes: {{kind: cpu, on: vm, threads: 1, max_prime: 10000, events: 1000}}
""",
    "disk": """\
guests: {vm: {vcpus: 1, memory: 256 MiB, data: 64 MiB, cache: none}}
workloads:
  blocks: {kind: fio, on: vm, rw: randread, size: 16 MiB, time: 2 s, block: 4 KiB, engine: psync, direct: true}
""",
    "network": f"""\
guests: {{near: {_GUEST}, far: {_GUEST}}}
workloads:
  flow: {{kind: iperf3, from: near, to: far, time: 2 s}}
""",
}
"""The guests and workloads of each kind of cells, which take about two seconds."""
KEPT = Path(__file__).parents[2] / "docs/evidence/control-cells.json"
"""What came of the cells of each run: when, where and on which commit, how many ended how, and the alarms."""
ALARM = re.compile(r" was (stopped|frozen) |CPU quota on | was changed from | settings were changed ")
_END_SECONDS = 120


def main() -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(prog="make control-cells", description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="where the runs are kept between two starts")
    parser.add_argument("--cells", type=int, default=1000, help="in all [default: %(default)s]")
    parser.add_argument("--minutes", type=float, default=90.0, help="for this start [default: %(default)s]")
    parser.add_argument("--option", action="append", default=[], help="a further option of `vmlab run`")
    asked = parser.parse_args()
    end = time.monotonic() + asked.minutes * 60
    here = commit()
    repeats = -(-asked.cells // len(KINDS))
    kept: dict[str, dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    went = []
    for place, (kind, text) in enumerate(KINDS.items()):
        folder, seconds = asked.folder / kind, (end - time.monotonic()) / (len(KINDS) - place)
        went.append(_gone_on(folder, text, repeats - measured_elsewhere(kept, folder), seconds, asked.option))
        for run, found in _result_of(folder).items():
            if found["outcomes"] != kept.get(run, {}).get("outcomes"):
                kept[run] = {**found, "commit": here, "options": asked.option}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    for kind in KINDS:
        say(f"{kind}: {sum(_measured(one) for one in kept.values() if one['kind'] == kind)} of {repeats} cells")
    alarms = [f"{run}: {alarm}" for run, one in kept.items() if one["commit"] == here for alarm in one["alarms"]]
    for alarm in alarms:
        say(alarm)
    say(f"{len(alarms)} alarms")
    return ExitCode.PASSED if not alarms and all(went) else ExitCode.FAILED


def measured_elsewhere(kept: dict[str, dict[str, Any]], folder: Path) -> int:
    """The cells of the kind of `folder` that runs in other folders, or on other machines, have measured."""
    own = {run.name for run in folder.glob("state/vmlab/runs/*")}
    return sum(_measured(one) for run, one in kept.items() if one["kind"] == folder.name and run not in own)


def _measured(result: dict[str, Any]) -> int:
    """The cells of one run in which the watches could give an alarm: a failed one was not measured to its end."""
    return sum(result["outcomes"].get(outcome, 0) for outcome in (Outcome.PASSED, Outcome.INVALID))


def _gone_on(folder: Path, text: str, repeats: int, seconds: float, options: list[str]) -> bool:
    """Measure the cells of one kind that are left, for so many seconds at most; whether that could be done."""
    folder.mkdir(parents=True, exist_ok=True)
    home, file = Home(folder / "state", folder / "run"), folder / "control.yaml"
    if sum(map(_measured, _result_of(folder).values())) >= repeats:
        return True
    file.write_text(f"name: control-{folder.name}\n{text}repeats: {repeats}\nagain: 0\n")
    runs = home.runs()
    words = ["resume", str(runs[0]["id"])] if runs else ["run", str(file), *options]
    with (folder / "output.log").open("ab") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", "vmlab", *words],
            env=home.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            running.wait(timeout=max(1.0, seconds))
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            running.wait(timeout=_END_SECONDS)
            return True
    # An invalid cell, for other load, is no reason to stop.
    went = running.returncode in (ExitCode.PASSED, ExitCode.INVALID)
    if not went:
        say(f"{folder.name}: exit code {running.returncode}; see {folder / 'output.log'}")
    return went


def _result_of(folder: Path) -> dict[str, dict[str, Any]]:
    """What is kept of the only run in a folder, by its name; nothing where there is no run yet."""
    events = _events(folder)
    if not events:
        return {}
    outcomes: Counter[str] = Counter()
    found, reasons, host = [], Counter[str](), {}
    for one in events:
        texts = [one["text"]] if one["kind"] == "Notice" else []
        if one["kind"] == "HostProbed":
            host = one["host"]
        if one["kind"] == "CellEnded":
            outcomes[one["outcome"]] += 1
            texts = [f"cell {one['cell']} {one['outcome']}: {reason}" for reason in one["reasons"]]
            if one["outcome"] != Outcome.ABORTED:
                reasons.update(re.sub(r"\d+(\.\d+)?", "N", reason) for reason in one["reasons"])
        found += [text for text in texts if ALARM.search(text)]
    result = {
        "kind": folder.name,
        "date": time.strftime("%Y-%m-%d", time.gmtime(events[0]["wall"])),
        "host": f"{host.get('cpus')} x {host.get('cpu')}",
        "outcomes": dict(sorted(outcomes.items())),
        "reasons": dict(sorted(reasons.items())),
        "alarms": found,
    }
    return {events[0]["run"]: result}


def _events(folder: Path) -> list[dict[str, Any]]:
    """The events of the only run in a folder; none where there is no run yet."""
    for store in folder.glob("state/vmlab/runs/*/run.sqlite"):
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
            return [json.loads(body) for (body,) in opened.execute("SELECT body FROM events ORDER BY id")]
    return []


if __name__ == "__main__":
    sys.exit(main())
