"""UnixBench's programs, compiled on the host: guests have no compiler, and other ones would run other code.

They are linked statically, so they need nothing of a guest's libraries, and made for every x86-64 processor, where
UnixBench itself would ask for the processor of the machine that compiles. Otherwise the options are UnixBench's own.

The source's own Makefile is run, so it gets nothing to reach: mount, PID and network namespaces of its own with memory
over /tmp, and the rights of nobody. All of it is gone with the namespaces.
"""

from __future__ import annotations

import asyncio

from vmlab.model.asset import Asset
from vmlab.model.errors import DeadlineExceeded, WorkloadError
from vmlab.workloads.assets import packed

OPTIONS = "-O3 -ffast-math -march=x86-64 -mtune=generic"
_SECONDS = 600.0
_CONTAINED = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)

_BUILD = r"""
set -eu
mount -t tmpfs -o size=512m,mode=1777 none /tmp
cd /tmp
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all /bin/sh -euc '
    export HOME=/tmp LC_ALL=C
    tar -xf -
    mkdir -p unixbench/tmp unixbench/results
    make -B -C unixbench programs "CC=gcc -static" "OPTON=$1" >&2
    tar -cf - unixbench
' build "$1"
"""
"""Takes the archive of the source on standard input, and gives that of the source with its programs.

`-B` compiles also what a copy has from an earlier build, which make would keep: files of the archive have no times.
"""


async def built(asset: Asset) -> bytes:
    """The archive of the user's source with the programs compiled in it.

    Raises WorkloadError with the compiler's last line where that fails, and DeadlineExceeded.
    """
    source = await asyncio.to_thread(packed, asset)
    try:
        process = await asyncio.create_subprocess_exec(
            *_CONTAINED,
            *("/bin/sh", "-c", _BUILD, "build", OPTIONS),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise WorkloadError(f"UnixBench cannot be compiled: {error}") from error
    try:
        async with asyncio.timeout(_SECONDS):
            archive, said = await process.communicate(source)
    except TimeoutError as error:
        raise DeadlineExceeded(f"UnixBench was not compiled within {_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = said.decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in lines if "error:" in line or "***" in line or "not found" in line]
        last = (errors or lines or ["without a word"])[0 if errors else -1]
        raise WorkloadError(f"UnixBench cannot be compiled: {last[:200]}")
    return archive
