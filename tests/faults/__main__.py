"""`make test-faults`: every fault of the matrix, done for real, and ``docs/faults.md`` written of what happened.

It needs root and the guest image. Exit code 0 means that all went as it should; 1 that a row did not.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.checklist import Checklist, say
from tests.faults import page
from tests.faults.row import Row, all_rows
from tests.faults.trying import Tried, in_lanes, snapshots_of_rows, tried
from vmlab.model.errors import ExitCode

LANES = 2
"""Rows at a time; most guests of rows have one vCPU, and one row of two waits for something most of the time."""


def _try(rows: list[Row], lanes: int, report: Checklist, *, keep: bool) -> None:
    def done(row: Row, result: Tried, output: Path) -> None:
        began = time.monotonic() - result.took
        report.line(began, f"{row.name}: {result.happened}", output, "; ".join(result.problems))
        if keep:
            page.keep(result)

    with snapshots_of_rows() as snapshots:
        in_lanes(rows, lanes, lambda row, log: tried(row, snapshots, log), report.output, done)


def main() -> int:
    """Entry point; the exit code."""
    known = all_rows()
    parser = argparse.ArgumentParser(prog="make test-faults", description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="only these; kill-* is a pattern")
    parser.add_argument("--list", action="store_true", help="print the names of all rows")
    parser.add_argument("--lanes", type=int, default=LANES, help="rows at a time [default: %(default)s]")
    parser.add_argument("--failed", action="store_true", help="only rows whose last try, as it is kept, did not pass")
    parser.add_argument("--no-page", action="store_true", help="keep nothing, and leave the page alone")
    asked = parser.parse_args()
    rows = [
        row for row in known.values() if not asked.rows or any(fnmatch.fnmatch(row.name, one) for one in asked.rows)
    ]
    if asked.failed:
        kept = page.kept()
        rows = [row for row in rows if kept.get(row.name, {"problems": True})["problems"]]
    if asked.list:
        for row in rows:
            say(row.name)
        return ExitCode.PASSED
    if not rows and asked.failed:
        say("test-faults: every row passed when it was tried last")
        return ExitCode.PASSED
    if not rows:
        parser.error(f"no row {asked.rows[0]!r}; --list has their names")
    if os.geteuid() != 0:
        say("test-faults: run it as root")
        return ExitCode.REFUSED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    report = Checklist(Path(tempfile.mkdtemp(prefix="vmlab-faults-")))
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        _try(rows, asked.lanes, report, keep=not asked.no_page)
        if len(rows) == len(known) and not asked.no_page:
            page.keep_whole(time.monotonic() - began, report.failed, asked.lanes, load)
    finally:
        report.total()
        if not asked.no_page:
            page.write()
    return ExitCode.FAILED if report.failed else ExitCode.PASSED


if __name__ == "__main__":
    sys.exit(main())
