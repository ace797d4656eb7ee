"""What the guests' services offer to a workload, the programs that they take, and questions to MariaDB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from vmlab.model.errors import WorkloadError
from vmlab.model.roles import ROLES

if TYPE_CHECKING:
    from vmlab.workloads.shell import Shell

LAB_USER = "lab"
"""Owns the files of the share and receives the mail."""

LAB_PASSWORD = "lab-password"
"""Samba's password for `LAB_USER`; the lab's network has no way out, so it guards nothing."""

SHARE = "tree"
"""Samba's share."""

SHARE_FOLDER = "/srv/tree"
"""The folder behind `SHARE`."""

MAIL_DOMAIN = "vmlab.test"
"""Postfix delivers mail for `LAB_USER` here."""

MAILDIR = "/home/lab/Maildir"
"""Where that mail arrives, one file a message in ``new``."""

DATABASE = "sbtest"
"""PostgreSQL's database and the role that owns it; reachable from the lab's network without a password."""

ACCESS_LOG = "/var/log/apache2/access.log"
"""Apache's log in the ``combined`` format, whose size field counts bytes sent with headers."""

ALWAYS_NEEDED = ("python3", "systemctl", "install", "useradd")
"""Programs that every guest needs."""

DATA_DISK_NEEDS = ("mkfs.ext4", "blockdev", "blkdiscard")
"""Programs that a guest with a data disk needs."""

_PACKAGES = {
    "blkdiscard": "util-linux",
    "blockdev": "util-linux",
    "install": "coreutils",
    "mkfs.ext4": "e2fsprogs",
    "systemctl": "systemd",
    "useradd": "passwd",
}
"""The Debian package of each of these that is not called as its package."""


def needed_programs(roles: Iterable[str], *, data_disk: bool) -> tuple[str, ...]:
    """The programs that a guest with these roles needs, whatever its workloads are."""
    of_roles = (program for role in roles for program in ROLES[role].programs)
    return (*ALWAYS_NEEDED, *(DATA_DISK_NEEDS if data_disk else ()), *of_roles)


def program_words(program: str) -> str:
    """A program that is missing, with the Debian package that has it where that is called otherwise."""
    if program.startswith("/"):
        return f"{program} (only vmlab's own image has it)"
    package = _packages().get(program)
    return program if package is None else f"{program} ({package})"


@cache
def _packages() -> Mapping[str, str]:
    # Late: kinds import this module.
    from vmlab.workloads.registry import kinds

    declared = [*(role.programs for role in ROLES.values()), *(kind.packages for kind in kinds().values())]
    return {program: package for one in (_PACKAGES, *declared) for program, package in one.items()}


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
