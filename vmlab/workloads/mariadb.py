"""Questions to a guest's MariaDB, as its root and over its socket."""

from __future__ import annotations

from vmlab.model.errors import WorkloadError
from vmlab.workloads.contract import Shell


async def sql(server: Shell, *statements: str) -> str:
    """The answers to `statements`: a line for each row, tabs between its values. Raises as `Shell.run` does."""
    return (await server.run(_client(*statements))).stdout


def _client(*statements: str) -> list[str]:
    return ["mariadb", "--batch", "--skip-column-names", "-e", "; ".join(statements)]


_SELECTS = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Qcache_hits')"


async def selects(server: Shell) -> int:
    """SELECTs that MariaDB has answered since it started, from its query cache or not. Raises WorkloadError."""
    return parse_selects(await sql(server, _SELECTS))


async def selects_since(server: Shell, file: str) -> tuple[int, int]:
    """The number that was kept in `file`, and `selects` now, in one command. Raises WorkloadError."""
    answer = (await server.run(["sh", "-c", 'cat "$0"; exec "$@"', file, *_client(_SELECTS)])).stdout
    kept, _, now = answer.partition("\n")
    return parse_selects(f"Com_select\t{kept.strip()}"), parse_selects(now)


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
