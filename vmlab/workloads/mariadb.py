"""Questions to a guest's MariaDB, as its root and over its socket."""

from __future__ import annotations

from vmlab.model.errors import WorkloadError
from vmlab.workloads.contract import Shell


async def sql(server: Shell, *statements: str) -> str:
    """The answers to `statements`: a line for each row, tabs between its values. Raises as `Shell.run` does."""
    words = ["mariadb", "--batch", "--skip-column-names"]
    return (await server.run([*words, "-e", "; ".join(statements)])).stdout


async def selects(server: Shell) -> int:
    """SELECTs that MariaDB has answered since it started, from its query cache or not. Raises WorkloadError."""
    return parse_selects(await sql(server, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Qcache_hits')"))


def parse_selects(text: str) -> int:
    """The sum of the counters in lines of name and value. Raises WorkloadError."""
    total, names = 0, set()
    for line in text.splitlines():
        name, _, value = line.partition("\t")
        if not value.isdigit():
            raise WorkloadError(f"MariaDB's counter cannot be read: {line[:200]!r}")
        names.add(name)
        total += int(value)
    if "Com_select" not in names:
        raise WorkloadError("MariaDB did not tell its Com_select")
    return total
