"""How many cells the engine of a fleet places: so many hosts that only sleep, in one process.

``python -m bench.fleet [HOSTS CELLS SECONDS]``, usually 200 hosts, 10,000 cells of 1 s.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter

from vmlab.fleet.engine import Engine


async def placed(hosts: int, cells: int, seconds: float) -> None:
    """Place the cells and print what it took."""
    measured: Counter[str] = Counter()

    async def measure(unit: int, host: str) -> None:
        measured[host] += 1
        await asyncio.sleep(seconds)

    async with Engine(measure) as engine:
        for number in range(hosts):
            await engine.open_host(f"hv{number}")
        began, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(engine.submit(unit, None) for unit in range(cells)))
        took, used = time.monotonic() - began, time.process_time() - cpu
    # Units whose results went with a worker at the end are begun again, and end at once in a real run.
    ideal = cells / hosts * seconds
    print(f"{cells} cells of {seconds:g} s on {hosts} hosts: {took:.1f} s, ideal {ideal:.1f} s, CPU {used:.1f} s")
    print(f"cells a host: {min(measured.values())} to {max(measured.values())}")


if __name__ == "__main__":
    given = sys.argv[1:] or ["200", "10000", "1"]
    asyncio.run(placed(int(given[0]), int(given[1]), float(given[2])))
