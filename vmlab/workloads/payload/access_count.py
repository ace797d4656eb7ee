"""Runs inside a guest: counts requests of one user agent in Apache's log of the ``combined`` format.

One JSON argument: ``log`` and ``agent``. Prints ``{"statuses": {"200": N, ...}, "bytes": N}``: requests for each
status, and bytes sent with headers.
"""

import json
import re
import sys
from pathlib import Path

LINE = re.compile(r'"[^"]*" (?P<status>[0-9]{3}) (?P<bytes>[0-9]+|-) "[^"]*" "(?P<agent>[^"]*)"$')


def count(log: Path, agent: str) -> tuple[dict[str, int], int]:
    statuses: dict[str, int] = {}
    total = 0
    with log.open(errors="replace") as lines:
        for line in lines:
            match = LINE.search(line.rstrip("\n"))
            if match and match["agent"] == agent:
                statuses[match["status"]] = statuses.get(match["status"], 0) + 1
                total += 0 if match["bytes"] == "-" else int(match["bytes"])
    return statuses, total


def main() -> None:
    options = json.loads(sys.argv[1])
    statuses, total = count(Path(options["log"]), options["agent"])
    sys.stdout.write(json.dumps({"statuses": statuses, "bytes": total}) + "\n")


if __name__ == "__main__":
    main()
