"""How workloads start Java in a machine that is emulated, and in one that is not."""

from __future__ import annotations

from vmlab.workloads.contract import Shell

SETTINGS = "@/run/vmlab-java"
"""Java's argument file, as `prepare_java` writes it."""
EMULATED = "-XX:TieredStopAtLevel=1"
"""Java's second compiler replaces code of the first one while it runs, which QEMU before 8.1 does not always see."""


async def prepare_java(shell: Shell) -> None:
    """Write the argument file, and start Java once, so that the first cell does not pay for reading it."""
    found = await shell.run(["systemd-detect-virt", "--vm"], check=False)
    settings = f"{EMULATED}\n" if found.stdout.strip() == "qemu" else ""
    await shell.write(SETTINGS.removeprefix("@"), settings.encode())
    await shell.run(["java", SETTINGS, "-version"])
