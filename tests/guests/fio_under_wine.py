"""Lets fio for Windows do what the lab asks of it, over SSH and under Wine: ``python -m tests.guests.fio_under_wine``.

Needs Wine, the 64-bit one of Debian's package wine64, and a ``fio.exe``, such as Debian's source cross-compiled
(``./configure --cc=x86_64-w64-mingw32-gcc --disable-native && make fio``). It prints the figures, and with a second
word keeps fio's report there. Wine is no Windows: what it shows is that command lines, paths, files and reports fit.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

from tests.fakes.windows_guest import under_wine, windows_guest
from vmlab.guests.added_guest import missing_on_windows
from vmlab.guests.held_client import HeldClient
from vmlab.guests.windows_shell import WindowsShell
from vmlab.workloads.kinds.fio import Fio, FioParams
from vmlab.workloads.programs import windows_report
from vmlab.workloads.workload_steps import WorkloadContext

_WINE = ("/usr/lib/wine/wine64",)
_WINESERVER = ("/usr/lib/wine/wineserver64",)
_MIB = 2**20
_COMMON = {"engine": "windowsaio", "size": 16 * _MIB, "jobs": 2, "depth": 8}
_WORK = {
    "disk": {"rw": "randread", "block": 4096, "bytes": 16 * _MIB},
    "mix": {"rw": "randrw", "block": 4096, "time": "2 s"},
    "checked": {"rw": "write", "block": 4096, "verify": True},
}


async def _measured(shell: WindowsShell, name: str, params: FioParams, keep: Path | None) -> dict[str, float]:
    workload, context = Fio(params), WorkloadContext(name, 1, 1, 1, shell)
    await workload.prepare(context)
    held = await HeldClient.hold(shell, shell, workload.client(context), 60)
    await held.measure_clock()
    await held.start_at(time.monotonic() + 0.2)
    async for line in held.follow(lambda start: click.echo(f"{name}: {1e3 * start.late:.1f} ms late"), 300):
        if (done := workload.progress(line)) is not None:
            click.echo(f"{name}: {done.done:g} of {done.total:g} {done.unit}")
    if keep is not None:
        (keep / f"fio-windows-{name}.json").write_text(await shell.read(windows_report(name)))
    values = dict((await workload.collect(context, held.finished)).values)
    await held.close()
    return values


async def _all(fio: Path, keep: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder, "prefix")
        environment = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
        starting = await asyncio.create_subprocess_exec(*_WINE, "wineboot.exe", "--init", env=environment)
        await starting.wait()
        shutil.copy(fio, prefix / "drive_c/windows/system32/fio.exe")
        Path(folder, "C:").symlink_to("prefix/drive_c")
        try:
            async with windows_guest(Path(folder), under_wine(_WINE, environment)) as shell:
                lacks = await missing_on_windows(shell, ["fio", "no-such-program"])
                click.echo(f"lacks: {lacks}")
                for name, given in _WORK.items():
                    values = await _measured(shell, name, FioParams.model_validate({**_COMMON, **given}), keep)
                    click.echo(f"{name}: {values}")
                left = await shell.sizes("C:/vmlab")
                click.echo(f"left: {left}")
        finally:
            ending = await asyncio.create_subprocess_exec(*_WINESERVER, "-k", env=environment)
            await ending.wait()


if __name__ == "__main__":
    asyncio.run(_all(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
