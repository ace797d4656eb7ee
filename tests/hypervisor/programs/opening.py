"""Opens and closes a lab without guests."""

import asyncio
import sys
from pathlib import Path

from vmlab.hypervisor.embedded import EmbeddedHypervisor


async def main(runtime: str, folder: str) -> None:
    """No guest is started."""
    hypervisor = EmbeddedHypervisor(Path(runtime), Path(folder) / "disks", "test")
    await hypervisor.open()
    await hypervisor.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
